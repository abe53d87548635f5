"""Defects of the protection after a recovery: in the records of the ranks, and in their processes."""

from __future__ import annotations

from chaos.evidence.protection import CONNECTED, DISCONNECTED, REGISTERED, REPORTED
from chaos.selftest.defect import Defect, Mutate
from chaos.selftest.records import Records, recorded

_LOST = 2
"""The rank that gets a new process in the base ``arf``."""


_REPAIRED = 5
"""The step in which a rank of the base ``uce`` is repaired."""


def _new_process_without(event: str, **match: str) -> Mutate:
    """Return a mutation: the new process of the lost rank has never recorded this event."""

    def change(records: Records) -> None:
        pid = records.last("agent.start", rank=_LOST)["pid"]
        records.drop(records.all(event, pid=pid, **match))

    return recorded(change)


def _leaves_at_once(records: Records) -> None:
    """Let rank 1 leave the SDK when the repair is over, and train on without it."""
    begun = records.last("train.begin", rank=1)
    records.drop(records.all(DISCONNECTED, rank=1))
    records.insert(begun, event=DISCONNECTED)


def _reports_no_more(records: Records) -> None:
    records.drop(records.all(REPORTED, rank=1, attempt="resume"))


def _all_report_no_more(records: Records) -> None:
    """Let no rank report an update behind step 6, which is the first one after the repair that all report."""
    records.drop([report for report in records.all(REPORTED) if report["step"] > _REPAIRED + 1])


DEFECTS = (
    Defect(
        name="arf-handler-not-registered-again",
        what="The new process has no handler that cleans its device.",
        layer="files",
        base="arf",
        check="mechanism",
        reason=("protected as before", f"rank {_LOST}'s process", "has registered no handler clean"),
        mutate=_new_process_without(REGISTERED, name="clean"),
    ),
    Defect(
        name="arf-not-connected-again",
        what="The new process trains, and the SDK does not know it.",
        layer="files",
        base="arf",
        check="mechanism",
        reason=("protected as before", f"rank {_LOST}'s process", "has not connected to the SDK"),
        mutate=_new_process_without(CONNECTED),
    ),
    Defect(
        name="sdk-left-after-repair",
        what="Rank 1 leaves the SDK when the repair is over, and trains on without it.",
        layer="files",
        base="uce",
        check="mechanism",
        reason=("protected as before", "rank 1 left the SDK before its step"),
        mutate=recorded(_leaves_at_once),
    ),
    Defect(
        name="updates-not-reported-after-resume",
        what="Rank 1 of the resumed job reports no update to the SDK.",
        layer="files",
        base="ttp",
        check="mechanism",
        reason=("protected as before", "rank 1 has not reported the update of step"),
        mutate=recorded(_reports_no_more),
    ),
    Defect(
        name="updates-not-reported-by-any-rank",
        what="From the second step after the repair on no rank reports an update to the SDK.",
        layer="files",
        base="uce",
        check="mechanism",
        reason=("protected as before", "rank 0 has not reported the update of step 7"),
        mutate=recorded(_all_report_no_more),
    ),
    Defect(
        name="updates-never-reported",
        what="No rank has ever reported an update to the SDK, which the repair rests on.",
        layer="files",
        base="uce",
        check="mechanism",
        reason=("protected as before", "is not recorded to have reported an update before the fault"),
        verdict="unknown",
        mutate=recorded(lambda records: records.drop(records.all(REPORTED))),
    ),
    Defect(
        name="updates-not-reported-after-repair",
        what="After the repair rank 1 reports no update to the SDK: the next save would be of a step long past.",
        layer="job",
        base="live-plain-uce",
        check="mechanism",
        reason=("protected as before", "rank 1 has not reported the update of step"),
        inside="chaos.selftest.live.protection:updates_not_reported",
    ),
)
