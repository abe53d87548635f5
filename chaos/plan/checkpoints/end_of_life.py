"""The end-of-life checkpoint: its savers, and the names of its files."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.parts.checkpoint import PlannedCheckpoint
from chaos.plan.topology.layout import Layout
from chaos.plan.traits import JobTraits


def plan_checkpoint(
    step: int | None,
    entitled: Sequence[tuple[int, ...]],
    traits: JobTraits,
    steps_per_epoch: int,
    only: Sequence[int] | None = None,
    steps_per_update: int = 1,
    layout: Layout | None = None,
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
        layout: the layout, where one rank writes the state of several (``gathers_by``).
    """
    if traits.gathers_by is not None and layout is not None:
        entitled = _writers(entitled, traits.gathers_by, layout)
    savers = tuple(only) if only is not None else tuple(group[0] for group in entitled)
    allowed = ((rank,) for rank in savers) if only is not None else entitled
    return PlannedCheckpoint(
        step=step,
        savers=savers,
        entitled=dict(zip(savers, allowed, strict=True)),
        directory=None if step is None else directory(step - step % steps_per_update, traits),
        files={rank: file_name(rank, step, traits, steps_per_epoch, steps_per_update, layout) for rank in savers}
        if step is not None and traits.file_format is not None
        else {},
    )


def directory(step: int, traits: JobTraits) -> str | None:
    """Return the directory that carries the step in its name, None for a form without such a directory.

    MindSpore 2.10 writes ``ttp_saved_checkpoints-step_N``, Megatron ``iter_0000012``. MindFormers keeps its ordinary
    checkpoint directory.
    """
    if traits.checkpoint_form == "megatron":
        return f"iter_{step:07d}"
    return f"ttp_saved_checkpoints-step_{step}" if traits.checkpoint_form == "mindspore" else None


def _writers(entitled: Sequence[tuple[int, ...]], stride: int, layout: Layout) -> tuple[tuple[int, ...], ...]:
    """Return the ranks that may write each slice of the weights, with the state that they gather, in order."""
    slices: dict[tuple[int, int], list[int]] = {}
    for rank in sorted(rank for group in entitled for rank in group):
        stage, place = divmod(rank, layout.ranks_per_stage)
        slices.setdefault((stage, place % stride), []).append(rank)
    return tuple(tuple(slices[key]) for key in sorted(slices))


def file_name(
    rank: int,
    step: int,
    traits: JobTraits,
    steps_per_epoch: int,
    steps_per_update: int = 1,
    layout: Layout | None = None,
) -> str:
    """Return the path of a rank's file, relative to the job's checkpoint directory.

    MindSpore numbers epochs and the steps in them from 1. MindFormers in sink mode, at sink size 1, counts every step
    as an epoch of one step, so ``5_1`` is step 5. Megatron's directory is that of a slice of the weights
    (``mp_rank_00``, with the pipeline stage ``mp_rank_00_001``).
    """
    if layout is not None and traits.checkpoint_form == "megatron":
        position = layout.position(rank)
        stage = f"_{position.stage:03d}" if layout.stages > 1 else ""
        return f"{directory(step, traits)}/mp_rank_{position.model:02d}{stage}/model_optim_rng.{traits.file_format}"
    prefix = traits.end_of_life_prefix
    epoch, in_epoch = divmod(step - 1, steps_per_epoch)
    if traits.checkpoint_form == "mindformers":
        count = f"{step}_1" if traits.sinks_steps else f"{epoch + 1}_{in_epoch + 1}"
        return f"checkpoint/rank_{rank}/{prefix}_rank_{rank}-{count}.{traits.file_format}"
    place = directory(step - step % steps_per_update, traits)
    return f"{place}/rank_{rank}/{prefix}_rank_{rank}-{epoch + 1}_{in_epoch + 1}.ckpt"
