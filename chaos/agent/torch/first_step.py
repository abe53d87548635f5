"""The number of the first step of a process: by the optimizer's count, or by the checkpoint that was loaded.

Where the optimizer counts nothing, as SGD, the save of the loaded file counts as it is recorded, else the step after
which the rank has held the same state, else the number that the file says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Protocol

from chaos.agent.step_source import StepSource
from chaos.agent.torch.optimizers import updates_of
from chaos.agent.training import Training


class Earlier(Protocol):
    """The records of the job's earlier processes."""

    def steps_of(self, digests: Mapping[str, str]) -> set[int]:
        """Return the steps after which the rank held these values."""

    def any_saved(self) -> bool:
        """Return whether a process of any rank has saved a checkpoint."""


def steps_before(
    training: Training,
    source: StepSource,
    optimizers: list[Any],
    *,
    empty_update: bool,
    earlier: Earlier | None,
    digests: Callable[[], Mapping[str, str]],
) -> int | None:
    """Return the number of steps before this process's first one; None where nothing says it, which makes it unclear.

    ``empty_update`` says that an optimizer was updated before any step. ``earlier`` is None where the rank had no
    process before. ``digests`` are those of the state that it begins with.
    """
    counts = [count for optimizer in optimizers if (count := updates_of(optimizer)) is not None]
    if empty_update and max(counts, default=0) == 1:
        if training.has_loaded and (step := training.saved_step() or training.loaded_step) is not None:
            return step  # the state of the optimizer was not loaded with the rest
        source.unclear(
            f"{type(optimizers[0]).__name__} has counted an update before the first step, as get_state_dict of "
            "torch.distributed.checkpoint makes to have a state: its count is not that of the steps. Ask for the "
            "state only where there is a checkpoint to load, or after the first step"
        )
        return None
    if counts:
        return _with_left_out(training, source, max(counts))
    if (step := _by_save(training)) is not None:
        return step
    held = set() if earlier is None else earlier.steps_of(digests())
    if len(held) == 1:
        return held.pop()
    if training.loaded_step is not None:
        return training.loaded_step
    # In a job that has saved nothing there is no checkpoint yet: what a first process reads is data, or weights.
    if earlier is None or not (training.has_loaded or earlier.any_saved()):
        return 0
    source.unclear(
        f"{'a' if training.has_loaded else 'no'} checkpoint was loaded, {type(optimizers[0]).__name__} has counted no "
        f"update, and {'several recorded states are' if held else 'no recorded state is'} that with which the rank "
        "begins: the number of the first step is not known"
    )
    return None


def _by_save(training: Training) -> int | None:
    """Return the step of the loaded checkpoint whose save is recorded; None without a record.

    A script may count its steps from 0, or save the number of the next step: then its own number and that of the record
    differ by one, and the recorded save is right. A save within a step may hold the state before it, so nothing follows
    from its number.
    """
    own, save = training.loaded_step, training.loaded_save()
    if save is None or own is None:
        return None if save is None else save.step
    return save.step if not save.within and abs(own - save.step) == 1 else own


def _with_left_out(training: Training, source: StepSource, updates: int) -> int | None:
    """Return the number of steps with so many updates: those whose update was left out before the save count too.

    None where another state was loaded than the one of that save, so that nothing tells how many they were.
    """
    save = training.loaded_save()
    if save is None or not save.left_out:
        return updates
    if updates != save.step - save.left_out:
        source.unclear(
            f"the optimizer has counted {updates} updates, and the checkpoint that was loaded was saved after "
            f"{save.step} steps, {save.left_out} of them without an update: the number of the first step is not "
            "known"
        )
        return None
    return save.step
