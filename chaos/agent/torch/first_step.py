"""The number of the first step of a process, by the optimizer's count, the loaded checkpoint or its recorded save."""

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
    if not training.has_loaded:
        return 0 if earlier is None else _handed_over(source, optimizers, earlier, digests())
    if (step := _loaded(training)) is not None:
        return step
    if earlier is None:  # there is no checkpoint yet: what was read is data, or weights to begin with
        return 0
    source.unclear(
        f"a checkpoint was loaded, and {type(optimizers[0]).__name__} has counted no update: the number of the "
        "first step is not known"
    )
    return None


def _handed_over(source: StepSource, optimizers: list[Any], earlier: Earlier, digests: Mapping[str, str]) -> int | None:
    """Return the step of the state that a process begins with, which another rank may have loaded for it.

    A job that has saved nothing begins anew, with whatever its generators draw.
    """
    steps = earlier.steps_of(digests)
    if len(steps) == 1:
        return steps.pop()
    if not earlier.any_saved():
        return 0
    source.unclear(
        f"this rank has loaded no checkpoint, {type(optimizers[0]).__name__} has counted no update, and "
        f"{'several recorded states are' if steps else 'no recorded state is'} that with which the rank begins: the "
        "number of the first step is not known"
    )
    return None


def _loaded(training: Training) -> int | None:
    """Return the step of the loaded checkpoint: its own number, or that of its recorded save; None without both.

    A script may count its steps from 0, or save the number of the next step: then both differ by one, and the recorded
    save is right. A save within a step may hold the state before it, so nothing follows from its number.
    """
    own, save = training.loaded_step, training.loaded_save()
    if own is None or (save is not None and not save.within and abs(own - save.step) == 1):
        return None if save is None else save.step
    return own


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
