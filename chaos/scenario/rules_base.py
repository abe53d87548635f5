"""Common code of the rules: how they report, and how they read data of unchecked types."""

from __future__ import annotations

from typing import Any, Protocol

from chaos.scenario.lines import Path


class Report(Protocol):
    """The receiver of the rules' findings."""

    def __call__(self, path: Path, message: str, hint: str = "", *, on_key: bool = False) -> None:
        """Report the value at ``path``, or its key if the key is wrong."""


def whole(value: Any) -> int | None:
    """Return a whole number, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Any) -> str | None:
    """Return a text, None for anything else."""
    return value if isinstance(value, str) else None


def mapped(value: Any) -> dict[str, Any]:
    """Return a mapping, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """Return a list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def one_rank(value: Any, path: Path, ranks: int | None, report: Report) -> None:
    """Report a rank that a cluster of ``ranks`` ranks does not have."""
    rank = whole(value)
    if rank is not None and ranks is not None and ranks > 0 and rank >= ranks:
        report(path, f"rank {rank} of {ranks}: {numbered('ranks', ranks)}")


def rank_range(values: list[Any], path: Path, ranks: int | None, report: Report) -> None:
    """Report ranks of a list that the cluster does not have, or that occur twice."""
    earlier: set[int] = set()
    for index, value in enumerate(values):
        rank = whole(value)
        if rank is None:
            continue
        if rank in earlier:
            report((*path, index), f"rank {rank} is in the list twice")
        earlier.add(rank)
        one_rank(rank, (*path, index), ranks, report)


def numbered(what: str, count: int) -> str:
    """Return the range of the numbers: ``ranks are 0 to 3``."""
    return f"{what} are 0 to {count - 1}" if count > 1 else f"{what} are only 0"
