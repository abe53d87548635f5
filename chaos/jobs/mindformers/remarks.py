"""Consequences of a job's configuration that nothing refuses: the plan states each, with the line of the YAML."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.jobs.mindformers.case import Case
from chaos.jobs.mindformers.experts import experts_of
from chaos.plan.recovery.mechanism import ONLINE, REPLACING

_WATCHDOG = "context.ascend_config.hccl_watchdog"


def remarks(case: Case) -> Iterator[str]:
    """Yield each condition of the vendor that the configuration does not meet, and its statements about replicas."""
    yield from watchdog_of_hccl(case)
    yield from holders_of_experts(case)


def watchdog_of_hccl(case: Case) -> Iterator[str]:
    """Yield a remark if HCCL's watchdog is on: it may end ranks that wait for the repair of online recovery.

    With ARF MindSpore turns it off by itself (2.10, utils/utils.py). Source: MindCluster, configuring process-level
    online recovery, the YAML of a MindSpore job.
    """
    mechanism = case.first_of(tuple(ONLINE))
    if mechanism is None or not REPLACING.isdisjoint(case.on) or case.job.device != "Ascend" or case.rehearsed:
        return
    written = case.value(_WATCHDOG)
    if written is not None and written.data is False:
        return
    place = written or case.value("context.ascend_config") or case.value("context")
    where = case.typed.origin("context") if place is None else place
    state = "is not set" if written is None else f"is {written.shown}"
    yield (
        f"{mechanism} ({case.written}) needs HCCL's watchdog off: {_WATCHDOG} {state} ({where.file}:{where.line}), "
        "and MindCluster's instructions for process-level online recovery set it to False. It was not tested on "
        "hardware whether a repair succeeds with the watchdog on."
    )


def holders_of_experts(case: Case) -> Iterator[str]:
    """Yield which ranks hold the same experts, and how many hold the same other weights."""
    experts = experts_of(case)
    if experts is None:
        return
    where = f"{experts.size.key} {experts.size.shown} ({experts.size.file}:{experts.size.line})"
    if not experts.known:
        yield (
            f"With {where} fewer ranks may hold the same experts than hold the same other weights, and which is left "
            "open: only ranks that hold the same state by every reading are compared."
        )
        return
    each = ", or ".join(dict.fromkeys(map(str, experts.readings)))
    yield (
        f"With {where} dense weights have {experts.dense} copies, and {each}. MindSpore "
        "gives MindIO the smallest set of ranks that hold a parameter in common (2.10, train/serialization.py): these "
        "are the replica groups. No job with experts was seen on hardware."
    )
