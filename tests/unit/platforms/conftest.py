"""Fixtures of the platforms' tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.platforms.base import LaunchSpec
from chaos.platforms.children import subreaper
from chaos.platforms.find import FoundProcess, find_run_processes
from chaos.run.wait import wait_for

Found = Callable[[int], list[FoundProcess]]


@pytest.fixture
def found(token: str) -> Found:
    """Wait until the run has exactly so many processes, all past their exec, and return them."""

    def found(count: int) -> list[FoundProcess]:
        seen: list[FoundProcess] = []

        def settled() -> list[FoundProcess] | None:
            seen[:] = find_run_processes(token)
            return seen if len(seen) == count else None

        return wait_for(f"{count} processes of the run", settled, seconds=20, detail=lambda: f"seen: {seen}")

    return found


@pytest.fixture
def adopting() -> Iterator[None]:
    with subreaper():
        yield


Spec = Callable[..., LaunchSpec]


@pytest.fixture
def spec(token: str, tmp_path: Path) -> Spec:
    """A launch of ``sh -c script``."""

    def spec(script: str, *, attempt: str = "train", cores: tuple[int, ...] | None = None) -> LaunchSpec:
        return LaunchSpec(
            run=token,
            attempt=attempt,
            argv=("sh", "-c", script),
            environment={"PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            log=tmp_path / f"{attempt}.log",
            cores=cores,
        )

    return spec
