"""The numbers about a save that a script's own checkpoint tells, by the names that all formats share.

PyTorch's optimizers count their updates in ``state[parameter]["step"]`` (Adam and its like; SGD counts nothing). The
other numbers are the script's own: nobody knows whether its ``step`` counts from 0 or from 1. ``step_num`` is the word
that docs/guides/own-loops.md asks for, and counts from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from chaos.observe.checkpoints.parsed import Plain
from chaos.observe.checkpoints.tensor import Tensor

UPDATES, SCRIPT_STEP = "global_step", "script_step"
STEP_NUM = "step_num"

_COUNTER = re.compile(r"(?P<optimizer>optimizer\d*)\.step\.(?P<parameter>.+)|(?P<other>(?:.*?\.)??)state\..+\.step")

_SCRIPT = ("global_step", "step", "iteration", "iter", "global_iteration", "current_step", "current_iteration")
"""Names that scripts and libraries give to the step: Lightning the first, Megatron the third."""

_DEEPEST = 2


def numbers_about(entries: Mapping[str, Tensor | Plain]) -> dict[str, int]:
    """Return the updates of the optimizers, where all have made the same number, and the script's own step."""
    numbers = numbers_of_script(entries)
    if (updates := _updates(entries)) is not None:
        numbers[UPDATES] = updates
    return numbers


def numbers_of_script(entries: Mapping[str, Tensor | Plain]) -> dict[str, int]:
    """Return the step that the script gives by the word that is asked for, and by words of its own."""
    numbers = {}
    if STEP_NUM in entries and (step := _whole(entries[STEP_NUM])) is not None:
        numbers[STEP_NUM] = step
    if (step := _script_step(entries)) is not None:
        numbers[SCRIPT_STEP] = step
    return numbers


def _updates(entries: Mapping[str, Tensor | Plain]) -> int | None:
    """Return the updates; of the parameters of an optimizer the one that has had most of them counts."""
    counted: dict[str, int] = {}
    for name, entry in entries.items():
        match = _COUNTER.fullmatch(name)
        if match is not None and (number := _whole(entry)) is not None:
            optimizer = match["optimizer"] or match["other"]
            counted[optimizer] = max(number, counted.get(optimizer, 0))
    return next(iter(counted.values())) if len(set(counted.values())) == 1 else None


def _script_step(entries: Mapping[str, Tensor | Plain]) -> int | None:
    names = [name for name in entries if name.count(".") < _DEEPEST and name.rpartition(".")[2] in _SCRIPT]
    return next((number for name in _in_order(names) if (number := _whole(entries[name])) is not None), None)


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name.count("."), _SCRIPT.index(name.rpartition(".")[2]), name))


def _whole(entry: Tensor | Plain) -> int | None:
    """Return a whole number; PyTorch keeps the counts of its optimizers as floats."""
    value = entry.scalar if isinstance(entry, Tensor) else entry
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
