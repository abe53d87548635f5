"""Sentences and short forms: how the plan speaks about ranks, groups, steps and reasons."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.base.rank_sets import rank_set, spans
from chaos.plan.topology.layout import Layout

SHOWN = 4
"""Items of a long list that are written out before the last one."""


def count(number: int, noun: str) -> str:
    """Return a count in words: ``1 rank``, ``65,536 ranks``; no noun here ends in -y or -s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listing(items: Sequence[object]) -> str:
    """Return a list in words, shortened where it is long: ``0, 1, 2, 3 … 131071``."""
    if len(items) <= SHOWN + 2:
        return ", ".join(str(item) for item in items)
    return f"{', '.join(str(item) for item in items[:SHOWN])} … {items[-1]}"


def ranks(numbers: Sequence[int]) -> str:
    """Return ranks in words: ``rank 2``, ``ranks 0,2-3,5``, ``ranks 0-4095 (4,096 in all)``."""
    return rank_set(numbers)


def are_lost(numbers: Sequence[int]) -> str:
    """Return the loss of ranks in words: ``rank 2 is lost``, ``ranks 1,3 are lost``."""
    return f"{ranks(numbers)} {'is' if len(numbers) == 1 else 'are'} lost"


def group(numbers: Sequence[int]) -> str:
    """Return a replica group as the SDK logs it: ``[0, 4]``; a long one as a set: ``[0-127]``."""
    return f"[{listing(numbers) if len(numbers) <= SHOWN + 2 else spans(numbers)}]"


def sentence(text: str) -> str:
    """Return a text as a sentence: first letter large, full stop at the end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def layout_reason(layout: Layout) -> str:
    """Return the reason for the replica groups."""
    size = layout.ranks_per_stage // layout.stride
    copies = f"{count(layout.ranks // size, 'replica group')} of {count(size, 'rank')}"
    if layout.shard == "optimizer" and size == layout.data:
        held = f"the {count(layout.data, 'rank')} of a data-parallel group hold the same weights"
        spread = "all of them" if layout.copies == 1 else f"{count(layout.shards, 'rank')} each"
        return sentence(f"{copies}: {held}, and the optimizer's state in shards over {spread} (shard: optimizer)")
    if size != layout.copies or layout.shard == "optimizer":
        return sentence(f"{copies}: fewer ranks hold the same experts than hold the same other weights")
    if layout.shard == "full":
        sliced = f"data_parallel {layout.data} with the whole state in shards over {count(layout.shards, 'rank')}"
        return sentence(f"{copies}: {sliced} leaves {count(layout.copies, 'rank')} with each shard (shard: full)")
    if layout.optimizer_parallel:
        sliced = f"data_parallel {layout.data} with the optimizer state sliced over {count(layout.shards, 'rank')}"
        return sentence(f"{copies}: {sliced} leaves {count(layout.copies, 'rank')} with each slice")
    whole = f"the {count(layout.data, 'rank')} of a data-parallel group hold the same weights and optimizer state"
    return sentence(f"{copies}: {whole}")
