"""Tools of the machine that answer from recordings: only the calls that are expected, in their order.

Where the recordings are from: ``hccn`` and ``quarantine`` are MindCluster's documents, word by word. Of the tables and
mappings of npu-smi, 23.0.rc3 and 910A are from its documents too (the name of the chip, which they leave out, is put
in), so is the answer to a reset (of an Atlas 350, without the question before it); the others are from reports of
users of 25.0.rc1.2, 24.1.rc3.7 and 26.0.rc1; all are shortened to a few cards.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.machine.linux.commands import Done

SEEDS = Path(__file__).parents[2] / "fuzz" / "seeds"
"""Recorded outputs; the fuzzers begin with them."""


def recorded(kind: str, name: str) -> str:
    """A recorded output."""
    return (SEEDS / kind / f"{name}.txt").read_text("utf-8")


class Recorded:
    """Answers the calls of a script of calls and answers, and fails on any other, or one that comes too early."""

    def __init__(self, calls: Iterable[tuple[str, str | Done]]) -> None:
        self._left = list(calls)
        self.answered: list[str] = []

    def __call__(self, *argv: str, answer: str = "") -> Done:
        call = " ".join(argv)
        assert self._left, f"{call} was not expected: every call has been answered"
        expected, said = self._left.pop(0)
        assert call == expected, f"{call} was not expected, but {expected}"
        self.answered.append(answer)
        return said if isinstance(said, Done) else Done(argv, 0, said)

    @property
    def left(self) -> list[str]:
        """Calls that have not come."""
        return [call for call, _ in self._left]


HEALTHY, FAULTY = "net health status: Success\n", "net health status: Fault\n"
