"""Looks, before and after a run with faults of a device, for cards that the cluster has quarantined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from chaos.faults.kind import FaultKind
from chaos.history.writer import HistoryWriter
from chaos.machine.ascend.quarantine import Quarantine, quarantined, what_to_do
from chaos.machine.linux.commands import Commands
from chaos.run.interrupts import uninterrupted
from chaos.run.progress import Progress


@contextmanager
def watching_quarantine(
    kinds: Iterable[FaultKind], history: HistoryWriter, progress: Progress, commands: Commands, nodes: Sequence[str]
) -> Iterator[None]:
    """Record the event ``quarantine`` of each node when the block has ended; none where no fault disturbs a card.

    ``kinds`` are the kinds of the faults. ``nodes`` are the nodes' names in the cluster; this machine asks about all of
    them.
    """
    if not any(kind.hazard is not None and kind.hazard.device for kind in kinds):
        yield
        return
    before = _ask(nodes, commands)
    try:
        yield
    finally:
        with uninterrupted():
            for quarantine, after in zip(before, _ask(nodes, commands), strict=True):
                _record(history, progress, quarantine, after)


def _ask(nodes: Sequence[str], commands: Commands) -> list[Quarantine]:
    """Return the quarantine of every node, asked at once: a silent API server is waited for as long as for one node."""
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        return list(pool.map(lambda node: quarantined(node, commands), nodes))


def _record(history: HistoryWriter, progress: Progress, before: Quarantine, after: Quarantine) -> None:
    node = after.node
    history.record(
        "quarantine",
        node=node,
        known=before.known and after.known,
        before=list(before.cards),
        after=list(after.cards),
        how=after.how if before.known else before.how,
        advice=what_to_do(node),
    )
    if left := sorted({*after.cards} - {*before.cards}):
        progress.note(f"left quarantined: {', '.join(left)} on {node}; {what_to_do(node)}")
    elif not (before.known and after.known):
        progress.note(f"whether a card is left quarantined is not known: {after.how}")
