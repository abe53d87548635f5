"""The stacks of the ranks at a deadline, in words: the ranks that differ from the others come first.

The harness has recorded them (``stacks.taken``). Paths are those of the job's machine, so only their ends are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from chaos.base.rank_sets import named
from chaos.observe.stacks import Frame

EVENT = "stacks.taken"
"""The event of the harness with the stacks."""

MARK = "; stacks: "
"""The text between a deadline's statement and the stacks. What follows differs between two nights of one failure."""

RAISED = "; raised in "
"""The text between a statement about an exception and the calls that raised it."""

BETWEEN = " | "

_MOST = 3
"""Most different stacks that are shown."""

_MOST_OWN = 2
"""Most calls of the job's own files that are shown of a stack, besides the last call."""

_INSTALLED = re.compile(r".*/(?:(?:site|dist)-packages|lib/python3\.\d+)/(?P<rest>.+)")
_AGENT = re.compile(r"(?:^|/)chaos/agent/")


@dataclass(frozen=True)
class RankStacks:
    """Ranks with the same stack, the latest call first.

    ``files`` have the stacks of all their threads. ``step`` is the last step that the last of them has begun or ended.
    """

    ranks: tuple[int, ...]
    frames: tuple[Frame, ...]
    files: tuple[str, ...]
    step: int = 0


Without = tuple[tuple[int, ...], str]
"""Ranks without a stack, and why."""


def stacks_of(data: Mapping[str, object]) -> tuple[list[RankStacks], list[Without]]:
    """Return the stacks of the event with these fields, and the ranks without a stack."""
    return list(_stacks(data.get("stacks"))), list(_without(data.get("without")))


def _stacks(value: object) -> Iterator[RankStacks]:
    for entry in value if isinstance(value, list) else ():
        match entry:
            case {"ranks": list(ranks), "files": list(files), "frames": list(frames)}:
                step = entry.get("step")
                reached = step if isinstance(step, int) else 0
                yield RankStacks(_ranks(ranks), tuple(_frames(frames)), tuple(map(str, files)), reached)


def _without(value: object) -> Iterator[Without]:
    for entry in value if isinstance(value, list) else ():
        match entry:
            case {"ranks": list(ranks), "why": str(why)}:
                yield _ranks(ranks), why


def _ranks(values: Sequence[object]) -> tuple[int, ...]:
    return tuple(value for value in values if isinstance(value, int))


def _frames(values: Sequence[object]) -> Iterator[Frame]:
    for value in values:
        match value:
            case [str(file), int(line), str(function)]:
                yield Frame(file, line, function)


def odd_ranks(stacks: Sequence[RankStacks]) -> tuple[int, ...]:
    """Return the ranks whose stack is unlike that of most others.

    Where no stack is that of most ranks, return the ranks that are steps behind all others; else none.
    """
    sizes = [len(stack.ranks) for stack in stacks]
    if len(stacks) < 2:
        return ()
    if max(sizes) * 2 <= sum(sizes):
        behind = sorted(stacks, key=lambda stack: stack.step)
        return behind[0].ranks if behind[0].step < behind[1].step else ()
    most = sizes.index(max(sizes))
    return tuple(sorted(rank for place, stack in enumerate(stacks) if place != most for rank in stack.ranks))


def in_words(stacks: Sequence[RankStacks], without: Sequence[Without]) -> str:
    """Return the stacks behind :data:`MARK`, empty where none was asked for."""
    texts = [f"{named(stack.ranks)}: {' < '.join(_calls(stack.frames)) or 'no Python frame'}" for stack in stacks]
    more = [f"{len(texts) - _MOST} other stacks"] if len(texts) > _MOST else []
    texts = [*texts[:_MOST], *more, *(f"{named(ranks)}: no stack, {why}" for ranks, why in without)]
    return MARK + BETWEEN.join(texts) if texts else ""


def raised_in(frames: Sequence[Frame]) -> str:
    """Return the calls that raised an exception behind :data:`RAISED`; empty without any."""
    return f"{RAISED}{' < '.join(_calls(frames))}" if frames else ""


def apart(text: str) -> tuple[str, list[str]]:
    """Return a statement without its stacks, and the texts of the stacks."""
    statement, mark, stacks = text.partition(MARK)
    if mark:
        return statement, stacks.split(BETWEEN)[: _MOST + 1]
    statement, mark, calls = text.partition(RAISED)
    return statement, [f"{RAISED.removeprefix('; ')}{calls}"] if mark else []


def first_stack(text: str) -> str:
    """Return a statement with its first stack only, which is that of the ranks that differ."""
    statement, stacks = apart(text)
    return f"{statement}; {stacks[0]}" if stacks else statement


def places(stacks: Sequence[RankStacks], attempt: str | None) -> tuple[str, ...]:
    """Return the file of the first rank of each stack that is shown."""
    return tuple(f"logs/{attempt}/{stack.files[0]}" for stack in stacks[:_MOST] if stack.files)


def _calls(frames: Sequence[Frame]) -> Iterator[str]:
    """Yield the last call, then the last ones of the job's own files, with a mark for the calls in between."""
    own = [place for place, frame in enumerate(frames) if not _is_library(frame)]
    shown = sorted({0, *own[:_MOST_OWN]}) if frames else []
    before = -1
    for place in shown:
        if place > before + 1:
            yield "…"
        yield _call(frames[place])
        before = place
    if frames and before < len(frames) - 1:
        yield "…"


def _is_library(frame: Frame) -> bool:
    return bool(_INSTALLED.match(frame.file) or _AGENT.search(frame.file)) or frame.file.startswith("<")


def _call(frame: Frame) -> str:
    match = _INSTALLED.match(frame.file)
    path = PurePosixPath(match["rest"] if match else frame.file)
    short = path if match or len(path.parts) < 3 else PurePosixPath(*path.parts[-2:])
    return f"{short}:{frame.line} in {frame.function}"
