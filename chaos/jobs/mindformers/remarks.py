"""What the vendor asks of a job's configuration and nobody refuses: the plan says it, with the line of the YAML."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.jobs.mindformers.case import Case

_WATCHDOG = "context.ascend_config.hccl_watchdog"
_ONLINE = ("UCE", "HCCE")


def remarks(case: Case) -> Iterator[str]:
    """Yield each condition that the configuration does not keep."""
    yield from watchdog_of_hccl(case)


def watchdog_of_hccl(case: Case) -> Iterator[str]:
    """Online recovery wants HCCL's watchdog off, which else may end the ranks that wait for the repair.

    With ARF MindSpore turns it off by itself (2.10, utils/utils.py). Source: MindCluster, configuring process-level
    online recovery, the YAML of a MindSpore job.
    """
    mechanism = case.first_of(_ONLINE)
    if mechanism is None or "ARF" in case.on or case.job.device != "Ascend" or case.rehearsed:
        return
    written = case.value(_WATCHDOG)
    if written is not None and written.data is False:
        return
    place = written or case.value("context.ascend_config") or case.value("context")
    where = case.typed.origin("context") if place is None else place
    seen = "is not set" if written is None else f"is {written.shown}"
    yield (
        f"{mechanism} ({case.written}) wants HCCL's watchdog off: {_WATCHDOG} {seen} ({where.file}:{where.line}), and "
        "MindCluster's instructions for process-level online recovery set it to False. Whether a repair comes to its "
        "end beside the watchdog was not seen on hardware."
    )
