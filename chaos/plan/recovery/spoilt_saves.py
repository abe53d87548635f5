"""The storage faults that keep an end-of-life checkpoint from being finished."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.describe import ranks
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled


def spoils_save(
    faults: Sequence[Scheduled], loss: Scheduled, entitled: Sequence[tuple[int, ...]], problems: Problems
) -> tuple[Scheduled, ...]:
    """Return the storage faults certain to be active when the loss of ranks calls for an end-of-life checkpoint.

    A fault that may come before the save or after it is noted as a problem, and so is a fault that takes the storage
    from only some of the ranks of a replica group that may save: ``entitled`` lists these ranks, for each group.
    """
    spoilers = []
    for fault in faults:
        how = fault.effect.spoils_saves
        if how is None or fault.handler is not None:
            continue
        if how.own_only and not _takes_savers(fault, loss, entitled, problems):
            continue
        if _before(fault, loss):
            spoilers.append(fault)
        else:
            problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} may come before the end-of-life checkpoint or after it: nothing holds its "
                f"ranks and those of fault {loss.fault.id!r} ({problems.where(loss.path)}) apart",
                text=str(fault.moment.earliest),
                hint="let the storage fault come a step before the loss",
            )
    return tuple(spoilers)


def _takes_savers(fault: Scheduled, loss: Scheduled, entitled: Sequence[tuple[int, ...]], problems: Problems) -> bool:
    """Return whether it takes the storage from all entitled savers of some replica group.

    Notes a fault for which this is open.
    """
    taken = frozenset(fault.fault.ranks)
    hit = [members for members in entitled if not taken.isdisjoint(members)]
    if any(taken.issuperset(members) for members in hit):
        return True
    if hit:
        problems.add(
            f"{fault.path}.target",
            f"fault {fault.fault.id!r} takes the storage from some of {ranks(hit[0])}, which hold the same state: "
            f"whether the rank that saves still has its storage when fault {loss.fault.id!r} "
            f"({problems.where(loss.path)}) calls for a save depends on the SDK",
            hint="let the loss take the other ranks that hold it, or the ranks that lose their storage",
        )
    return False


def _before(fault: Scheduled, loss: Scheduled) -> bool:
    """Return whether an all-reduce that needs the ranks of both faults lies between the storage fault and the loss."""
    if not fault.moment.exact:
        return False
    first, second = fault.moment.earliest, loss.moment.earliest
    exchange = first.step + first.contributed
    return second.step > exchange or (second.step == exchange and second.contributed)
