"""Part of check ``mechanism``: a save that the storage must refuse has failed for that reason and no other."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN
from chaos.evidence.statement_data import about
from chaos.mechanisms.case import Case


def judge_refused(case: Case, handlers: tuple[str, ...]) -> None:
    """Judge the errors of the handlers. Says nothing where the plan has no fault of the storage.

    A volume that was taken from a node is a reason for its own ranks only, where one of them is ordered to save.
    """
    begun = case.window.of(case.history.select("handler.enter", attempt=TRAIN))
    saving = {event.rank for event in begun if event.data.get("name") in handlers}
    hit = [
        (fault, how)
        for fault in case.plan.faults
        if (how := fault.effect.spoils_saves) is not None and (not how.own_only or saving.intersection(fault.ranks))
    ]
    if not hit:
        return
    expected = f"the save fails because of fault {', '.join(fault.id for fault, _ in hit)}"
    failed = [
        event
        for event in case.window.of(case.history.select("handler.exit", attempt=TRAIN, ok=False))
        if event.data.get("name") in handlers
    ]
    for event in failed:
        error = str(event.data.get("error"))
        refusals = [how for fault, how in hit if not how.own_only or event.rank in fault.ranks]
        texts = [text for how in refusals for text in how.errors]
        if not any(text in error for text in texts):
            case.collector.fail(
                expected,
                f"{event.data['name']} failed on rank {event.rank}: {error}",
                case.line,
                event.source,
                data=about(event.rank, fault=hit[0][0].id),
            )
    if not failed:
        case.collector.unknown(expected, "no handler has recorded an error", case.line, data=about(fault=hit[0][0].id))
    observation = "; ".join(
        f"{event.data['name']} on rank {event.rank}: {event.data.get('error')}" for event in failed[:3]
    )
    case.collector.settle(expected, observation, case.line, *(event.source for event in failed[:3]))
