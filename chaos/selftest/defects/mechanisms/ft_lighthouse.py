"""Defects of a job of torchft whose lighthouse is killed: groups that train on, come back, or end otherwise.

The run is recorded, since torchft is installed on few machines.
"""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded

BASE = "torchft-kill-lighthouse"

_GROUPS = 3
_LATE = 300 * 1_000_000_000
"""Nanoseconds by which a group ends later than the plan gives it."""

_defect = partial(file_defect, base=BASE, check="mechanism")
_injection = partial(file_defect, base=BASE, check="injection", verdict="unknown")


def _landed(records: Records) -> Record:
    return records.first("fault.landed")


def _end(records: Records, rank: int) -> Record:
    return records.first("rank.exit", rank=rank)


def _trains_on(records: Records) -> None:
    """Let every group commit two more steps behind the end of the lighthouse."""
    at = _landed(records)["mono"]
    for rank in range(_GROUPS):
        vote = records.last("step.voted", rank=rank)
        own = records.all(rank=rank, pid=vote["pid"])
        last = [record for record in own if record["mono"] <= at and record["event"] != "rank.found"][-1]
        for number in (1, 2):
            later = {"step": vote["step"] + number, "mono": at + number * 1000, "wall": last["wall"] + number * 1000}
            last = records.insert(last, **{**vote, **later})


def _started_again(records: Records) -> None:
    """Let the launcher start group 1 again when it has ended."""
    end, start = _end(records, 1), records.first("agent.start", rank=1)
    records.insert(end, **{key: value for key, value in start.items() if key not in ("mono", "wall")})


def _ends(rank: int, **status: object) -> Mutate:
    """Return a mutation: a group ended otherwise, by the harness's record and by the launcher's."""

    def change(records: Records) -> None:
        end = _end(records, rank)
        for record in (end, records.first("child.exit", child_pid=end["pid"])):
            record.update(status)

    return recorded(change)


def _too_late(records: Records) -> None:
    """Let everything behind the lighthouse's end come five minutes later."""
    records.delay(_landed(records)["mono"] + 1, _LATE)


def _votes_gone(records: Records) -> None:
    records.drop(records.all("step.voted"))


def _another_process(records: Records) -> None:
    """Let the process that was killed be another one than the lighthouse."""
    act = records.first("fault.injecting")
    act["pid"] = _landed(records)["evidence"][0]["pid"] = records.first("launcher.found", role="launcher")["pid"]


def _killed_by_another(records: Records) -> None:
    """Let the lighthouse end before the harness kills it."""
    records.first("launcher.exit", role="lighthouse").update(signal=None, code=1)


def _process_reused(records: Records) -> None:
    records.first("fault.injecting")["start_time"] += 1


DEFECTS = (
    _defect(
        "ft-lighthouse-gone-and-trained-on",
        "The groups commit two more steps behind the end of the lighthouse.",
        recorded(_trains_on),
        "without the lighthouse no step is committed that needs a new quorum",
        "were committed after its end",
    ),
    _defect(
        "ft-lighthouse-gone-and-group-started-again",
        "The launcher starts group 1 again, though there is no lighthouse.",
        recorded(_started_again),
        "without the lighthouse no group is started again",
        "rank 1 was started again",
    ),
    _defect(
        "ft-lighthouse-gone-and-group-ends-with-0",
        "Group 2 ends as if it had trained to the end.",
        _ends(2, signal=None, code=0),
        "rank 2 exit code 0, not by an error of its own",
    ),
    _defect(
        "ft-lighthouse-gone-and-group-killed",
        "Group 0 is killed while it waits for a quorum.",
        _ends(0, signal=9, code=None),
        "rank 0 ended by SIGKILL, not by an error of its own",
    ),
    _defect(
        "ft-lighthouse-gone-and-another-error",
        "Group 1 ends by an error that is no timeout.",
        recorded(
            lambda records: records.first("error.uncaught", rank=1).update(error="ValueError: nan", base="ValueError")
        ),
        "rank 1 ended by ValueError: nan",
    ),
    _defect(
        "ft-lighthouse-gone-and-groups-hang",
        "The groups wait for a quorum for five minutes longer than their timeout.",
        recorded(_too_late),
        "ended 3",
        "s after the lighthouse, and 50 s are given",
    ),
    _defect(
        "ft-lighthouse-error-not-recorded",
        "The error by which group 1 ended is not recorded.",
        recorded(lambda records: records.drop(records.all("error.uncaught", rank=1))),
        "rank 1 exit code 1, and no error of it is recorded",
        verdict="unknown",
    ),
    _defect(
        "ft-lighthouse-end-not-recorded",
        "The end of group 1 is not recorded.",
        recorded(lambda records: records.drop([_end(records, 1)])),
        "how rank 1 ended is not recorded",
        verdict="unknown",
    ),
    _defect(
        "ft-lighthouse-no-vote-recorded",
        "No vote of any group is recorded.",
        recorded(_votes_gone),
        "without the lighthouse no step is committed that needs a new quorum",
        "no vote of any group is recorded",
        verdict="unknown",
    ),
    _injection(
        "ft-lighthouse-another-process-killed",
        "The launcher was hit instead of the lighthouse.",
        recorded(_another_process),
        "was never identified as the lighthouse",
    ),
    _injection(
        "ft-lighthouse-ended-by-itself",
        "The lighthouse ended with an error of its own.",
        recorded(_killed_by_another),
        "the lighthouse exit code 1, not killed by SIGKILL",
    ),
    _injection(
        "ft-lighthouse-process-number-reused",
        "The process that was killed has the number of the lighthouse, and began at another time.",
        recorded(_process_reused),
        "is not proven to be the one identified as the lighthouse",
    ),
    _injection(
        "ft-lighthouse-exit-not-recorded",
        "The exit status of the lighthouse is not recorded.",
        recorded(lambda records: records.drop(records.all("launcher.exit", role="lighthouse"))),
        "no exit status of the lighthouse",
    ),
)
