"""Part of check ``mechanism``: a mechanism that must fail was really tried, and really failed."""

from __future__ import annotations

from chaos.evidence.facts import TRAIN, places, ranks_text
from chaos.evidence.statement_data import about
from chaos.mechanisms.case import Case


def judge_tried(case: Case, handlers: tuple[str, ...]) -> None:
    """Judge the calls of its handlers: at least one call, and at least one that never ended well.

    A handler fails when it raises, or when its process ends in it.
    """
    name, collector = case.recovery.mechanism, case.collector
    expected = f"{name} is tried and fails, and the next mechanism follows"
    calls = [
        (handler, rank, event)
        for handler in handlers
        for rank, events in case.calls(handler).items()
        for event in events
    ]
    if not calls:
        heard = case.history.select("handler.enter", attempt=TRAIN)
        if heard or case.logged():
            collector.fail(
                expected,
                f"it was not tried: none of {', '.join(handlers)} was called",
                case.line,
                data=about(mechanism=name),
            )
        else:
            collector.unknown(expected, "there is neither a handler's call nor a log of the SDK", case.line)
        collector.close()
        return
    failed = []
    for handler, rank, enter in calls:
        leaves = case.calls(handler, "handler.exit").get(rank, [])
        after = [event for event in leaves if event.pid == enter.pid and event.seq > enter.seq]
        if not after or after[0].data.get("ok") is not True:
            failed.append((handler, rank, enter))
    if not failed:
        observation = (
            f"every handler of {name} that was called ended well on {ranks_text(sorted({c[1] for c in calls}))}"
        )
        collector.fail(
            expected,
            observation,
            case.line,
            *places(event for _, _, event in calls[:3]),
            data=about(sorted({c[1] for c in calls})),
        )
    where = ", ".join(f"{handler} on rank {rank}" for handler, rank, _ in failed[:3])
    collector.settle(expected, f"failed in {where}", case.line, *places(event for _, _, event in failed[:3]))
