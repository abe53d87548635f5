"""The Python stacks of the ranks at a deadline: each rank that has offered them is asked, and nothing else.

A rank writes them by itself (:mod:`chaos.agent.stacks`). Whatever a rank has recorded is not believed: the harness asks
only the processes that it follows, by its own signal, and only if the kernel says that they catch it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.agent.stacks import SIGNAL, file_name
from chaos.base.clock import Clock
from chaos.base.growth import Growing
from chaos.base.plain_files import read_plain
from chaos.base.rank_sets import by_word
from chaos.base.wait import DeadlineExpired, wait_for
from chaos.machine.job.protocol import Job, PlatformError, TellsSignals
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import read_signals

if TYPE_CHECKING:
    from chaos.observe.stacks import Frame

_SECONDS, _EACH = 5.0, 0.1
"""Seconds in which the ranks must have written: all together, and more for each of many ranks on the same cores."""

MOST_FRAMES = 30
"""Frames of a stack that are recorded, the latest ones; the file has all."""


@dataclass
class _Asked:
    """A rank that was asked. ``size`` is that of its file at the last look."""

    path: Path
    main: int | None
    size: int = -1
    frames: tuple[Frame, ...] | None = None


class Stacks:
    """The offers of the ranks of one launch, and their files in ``logs``."""

    def __init__(self, logs: Path, clock: Clock) -> None:
        self._logs = logs
        self._clock = clock
        self._offers: dict[tuple[int, int], int | None] = {}

    def note(self, event: Mapping[str, Any]) -> None:
        """Take in the start of an agent, with its offer."""
        match event:
            case {"rank": int(rank), "pid": int(pid), "stacks": {"signal": int(signum), "main": int() | None as main}}:
                if signum == SIGNAL:
                    self._offers[rank, pid] = main

    def take(
        self, job: Job, ranks: Mapping[int, ProcessIdentity], exited: Collection[int], steps: Mapping[int, int]
    ) -> dict[str, Any] | None:
        """Ask the ranks that have joined and not exited; return the fields of the event. ``steps`` are their last ones.

        ``stacks`` lists each stack once with its ranks and their files, ``without`` the ranks without a stack, with the
        reason. None where there is no such rank.
        """
        asked: dict[int, _Asked] = {}
        without: dict[int, str] = {}
        left = sorted(ranks.keys() - set(exited))
        for rank in left:
            reason = self._ask(job, rank, ranks[rank], asked)
            if reason:
                without[rank] = reason
        seconds = Growing(_SECONDS, _EACH, len(asked))
        with contextlib.suppress(DeadlineExpired):
            wait_for("stacks", lambda: _all_written(asked), seconds=seconds, clock=self._clock)
        for rank, answer in asked.items():
            if answer.frames is None:
                without[rank] = f"its stacks were not written within {seconds:g} s"
        if not left:
            return None
        return {
            "stacks": list(_merged(asked, steps)),
            "without": [{"ranks": r, "why": w} for w, r in by_word(without).items()],
        }

    def remove_empty_files(self) -> None:
        """Remove the files of ranks that were never asked."""
        for path in self._logs.glob("stacks-rank_*.txt"):
            with contextlib.suppress(OSError):
                if path.lstat().st_size == 0:
                    path.unlink()

    def _ask(self, job: Job, rank: int, identity: ProcessIdentity, asked: dict[int, _Asked]) -> str:
        """Ask a rank; return why it was not asked."""
        if (rank, identity.pid) not in self._offers:
            return "its agent offers no stacks"
        try:
            state = job.state(identity)
            if state != "alive":
                return f"its process is {state}"
            signals = job.signals(identity) if isinstance(job, TellsSignals) else read_signals(identity.pid)
            if signals is None or SIGNAL not in signals.caught:
                return "its process does not catch the signal"
            job.signal(identity, SIGNAL)
        except (PlatformError, LookupError, OSError, ValueError) as error:
            return f"it cannot be asked: {error}"
        asked[rank] = _Asked(self._logs / file_name(rank, identity.pid), self._offers[rank, identity.pid])
        return ""


def _all_written(asked: Mapping[int, _Asked]) -> bool:
    """Return whether all stacks are there: each is whole, and its file no longer grows."""
    from chaos.observe.stacks import MOST_BYTES, main_stack  # at a deadline: the job starts sooner without

    for answer in asked.values():
        if answer.frames is not None:
            continue
        try:
            content = read_plain(answer.path, MOST_BYTES)
        except OSError:
            continue
        stack = main_stack(content, answer.main)
        if stack is not None and len(content) == answer.size:
            answer.frames = stack.frames
        answer.size = len(content)
    return all(answer.frames is not None for answer in asked.values())


def _merged(asked: Mapping[int, _Asked], steps: Mapping[int, int]) -> Iterator[dict[str, Any]]:
    """Yield each stack with its ranks: where all wait for a rank, it comes first.

    It is alone with its stack, or behind the others.
    """
    known = {rank: answer.frames[:MOST_FRAMES] for rank, answer in asked.items() if answer.frames is not None}

    def step(ranks: list[int]) -> int:
        return min(steps.get(rank, 0) for rank in ranks)

    for frames, ranks in sorted(by_word(known).items(), key=lambda entry: (len(entry[1]), step(entry[1]), entry[1])):
        yield {
            "ranks": ranks,
            "step": step(ranks),
            "files": [asked[rank].path.name for rank in ranks],
            "frames": [[frame.file, frame.line, frame.function] for frame in frames],
        }
