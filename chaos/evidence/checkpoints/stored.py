"""The step of a checkpoint by the numbers in it: ``step_num`` counts steps, ``global_step`` updates of the optimizer.

Both are the same where every step makes an update. With gradient accumulation several steps make one update, so the
number of updates names the step of the last update, or one of the steps after it. In a job that has left out updates
(``update.left_out`` in its history) the number of updates gives no step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState

STEP, COUNTER = "step_num", "global_step"

SCRIPT = "script_step"
"""A script's own number of the step, which may count from 0 or from 1 (chaos.observe.checkpoints.parsed)."""


def leaves_out_updates(history: History) -> bool:
    """Return whether a rank has left out an update, as PyTorch's GradScaler does."""
    return history.first("update.left_out") is not None


def without_counter(state: SavedState) -> SavedState:
    """Return a saved state without the optimizer's count."""
    return replace(state, numbers={name: number for name, number in state.numbers.items() if name != COUNTER})


def counted(name: str, step: int, every: int) -> int:
    """Return the value of a number after a step, where ``every`` steps make one update."""
    return step // every if name == COUNTER else step


def steps_by_name(numbers: Mapping[str, int], every: int) -> dict[str, frozenset[int]]:
    """Return the numbers in a file that give a step, each with the steps after which it is right."""
    possible_steps = {}
    if STEP in numbers:
        possible_steps[STEP] = frozenset({numbers[STEP]})
    if COUNTER in numbers:
        first = numbers[COUNTER] * every
        possible_steps[COUNTER] = frozenset(range(first, first + every))
    return possible_steps


def one_step(numbers: Mapping[str, int], every: int, among: Iterable[frozenset[int]] = ()) -> int | None:
    """Return the stored step: ``step_num``, else the optimizer's count. None where neither is there.

    Among several steps with the same number of updates, the first of ``among`` that leaves one decides; None where none
    does.
    """
    possible_steps = steps_by_name(numbers, every)
    steps = possible_steps.get(STEP, possible_steps.get(COUNTER, frozenset()))
    if len(steps) == 1:
        return next(iter(steps))
    return next((step for others in among if len(left := steps & others) == 1 for step in left), None)


def supported_step(numbers: Mapping[str, int], held: frozenset[int]) -> int | None:
    """Return the step that a rank recorded for its save, where the script's own number supports it; else None.

    The number alone says nothing: nobody knows from where it counts.
    """
    if SCRIPT not in numbers or len(held) != 1:
        return None
    step = next(iter(held))
    return step if abs(numbers[SCRIPT] - step) <= 1 else None
