"""The end-of-life checkpoint: its savers, and the names of its files."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.traits import JobTraits


def plan_checkpoint(
    step: int | None,
    entitled: Sequence[tuple[int, ...]],
    traits: JobTraits,
    steps_per_epoch: int,
    only: Sequence[int] | None = None,
    steps_per_update: int = 1,
) -> PlannedCheckpoint:
    """Plan the checkpoint of one step.

    Args:
        step: the step it holds, None where it is open.
        entitled: the surviving ranks of every replica group, in group order, none of them empty.
        traits: the job kind's properties.
        steps_per_epoch: batches in one epoch.
        only: one rank for each group, in group order, when no other rank may save. Default: the lowest survivor
            saves, as in the vendor's example, and any other survivor of the group may in its place.
        steps_per_update: steps of one update: the SDK counts the steps that made an update, and the directory carries
            its number.
    """
    savers = tuple(only) if only is not None else tuple(group[0] for group in entitled)
    allowed = ((rank,) for rank in savers) if only is not None else entitled
    return PlannedCheckpoint(
        step=step,
        savers=savers,
        entitled=dict(zip(savers, allowed, strict=True)),
        directory=None if step is None else directory(step - step % steps_per_update, traits),
        files={rank: file_name(rank, step, traits, steps_per_epoch, steps_per_update) for rank in savers}
        if step is not None and traits.file_format is not None
        else {},
    )


def directory(step: int, traits: JobTraits) -> str | None:
    """Return the directory that carries the step in its name, None for a form without such a directory.

    MindSpore 2.10 writes ``ttp_saved_checkpoints-step_N``. MindFormers keeps its ordinary checkpoint directory.
    """
    return f"ttp_saved_checkpoints-step_{step}" if traits.checkpoint_form == "mindspore" else None


def file_name(rank: int, step: int, traits: JobTraits, steps_per_epoch: int, steps_per_update: int = 1) -> str:
    """Return the path of a rank's file, relative to the job's checkpoint directory.

    MindSpore numbers epochs and the steps in them from 1. MindFormers in sink mode, at sink size 1, counts every step
    as an epoch of one step, so ``5_1`` is step 5.
    """
    prefix = traits.end_of_life_prefix
    epoch, in_epoch = divmod(step - 1, steps_per_epoch)
    if traits.checkpoint_form == "mindformers":
        count = f"{step}_1" if traits.sinks_steps else f"{epoch + 1}_{in_epoch + 1}"
        return f"checkpoint/rank_{rank}/{prefix}_rank_{rank}-{count}.{traits.file_format}"
    place = directory(step - step % steps_per_update, traits)
    return f"{place}/rank_{rank}/{prefix}_rank_{rank}-{epoch + 1}_{in_epoch + 1}.ckpt"
