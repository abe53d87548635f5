"""Defects of the harness itself: the planned fault was not made, or was made elsewhere, later, or twice."""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded

VICTIM = 2
STEP = 6


_defect = partial(file_defect, base="ttp", check="injection", verdict="unknown")


def _evidence(records: Records) -> Record:
    record: Record = records.first("fault.landed")["evidence"][0]
    return record


def _missed(records: Records) -> None:
    """Record that the process was gone before it could be killed."""
    landed = records.first("fault.landed")
    missed = records.insert(landed, event="fault.missed", reason="the process was gone")
    for key in ("ranks", "step", "phase", "evidence"):
        missed.pop(key, None)
    records.drop([landed, *records.all("fault.injecting"), *records.all("fault.healed")])
    records.end(records.last("rank.exit", attempt="train", rank=VICTIM), signal=None, code=1)


def _never_tried(records: Records) -> None:
    records.drop([*records.all("fault.landed"), *records.all("fault.injecting"), *records.all("fault.healed")])


def _in_rank(rank: int) -> Mutate:
    """Return a mutation: another rank is hit instead of the planned one, by every record."""

    def change(records: Records) -> None:
        process = records.first("rank.found", attempt="train", rank=rank)
        act = records.first("fault.injecting")
        act.update(rank=rank, target_rank=rank, pid=process["pid"], start_time=process["start_time"])
        records.first("fault.landed")["ranks"] = [rank]
        _evidence(records).update(rank=rank, pid=process["pid"])
        records.end(records.last("rank.exit", attempt="train", rank=rank), signal=9, code=None)
        records.end(records.last("rank.exit", attempt="train", rank=VICTIM), signal=None, code=1)

    return recorded(change)


def _at(**place: Any) -> Mutate:
    """Return a mutation: the rank was held and hit somewhere else, by every record of it."""

    def change(records: Records) -> None:
        records.first("fault.landed").update(place)
        _evidence(records)["barrier"].update(place)
        records.first("barrier.reached").update(place)

    return recorded(change)


def _again(records: Records) -> None:
    landed = records.first("fault.landed")
    records.insert(landed, **{key: value for key, value in landed.items() if key not in ("mono", "wall")})


def _again_after_resume(records: Records) -> None:
    """Make the fault to the rank of the resumed job, too."""
    act = records.first("fault.injecting")
    process = records.first("rank.found", attempt="resume", rank=VICTIM)
    kept = {key: value for key, value in act.items() if key not in ("mono", "wall", "attempt", "pid", "start_time")}
    records.insert(process, **kept)


def _raised_again(records: Records) -> None:
    """Raise the error a second time, in the step that is trained again."""
    once = records.first("fault.raised")
    again = records.last("step.begin", rank=once["rank"], step=once["step"])
    records.insert(again, **{key: value for key, value in once.items() if key not in ("mono", "wall")})


def _launcher_hit(records: Records) -> None:
    launcher = records.first("launcher.found", attempt="train", role="launcher")
    records.first("fault.injecting").update(pid=launcher["pid"], start_time=launcher["start_time"])
    _evidence(records)["pid"] = launcher["pid"]


def _lives_on(records: Records) -> None:
    """Let the rank that was killed at the end of step 6 begin step 7."""
    reached = records.first("barrier.reached")
    begun = records.insert(reached, event="step.begin", step=STEP + 1)
    for key in ("fault", "phase"):
        del begun[key]


def _another_pid(records: Records) -> None:
    records.first("fault.injecting")["start_time"] += 1


def _to_the_new_process(records: Records) -> None:
    """Make the fault to the replacement of the killed process, too."""
    act = records.first("fault.injecting")
    new = records.last("rank.found", attempt="train", rank=act["rank"])
    kept = {key: value for key, value in act.items() if key not in ("mono", "wall")}
    records.insert(new, **{**kept, "pid": new["pid"], "start_time": new["start_time"]})


def _exit_of_another_process(records: Records) -> None:
    act = records.first("fault.injecting")
    records.first("rank.exit", attempt="train", rank=act["rank"])["start_time"] += 1


DEFECTS = (
    _defect(
        "fault-missed",
        "The process had ended before it could be killed, and the job ended for another reason.",
        recorded(_missed),
        "the fault missed: the process was gone",
    ),
    _defect(
        "fault-not-injected",
        "The fault was never made.",
        recorded(_never_tried),
        "no landing of this fault",
        "the planned fault was not injected",
    ),
    _defect(
        "fault-in-wrong-rank",
        "Rank 3 was killed instead of rank 2.",
        _in_rank(3),
        "it landed on rank 3: the planned fault was not injected",
    ),
    _defect(
        "fault-one-step-late",
        "Rank 2 was killed one step later.",
        _at(step=STEP + 1),
        "rank 2 was at step 7",
        "the planned fault was not injected",
    ),
    _defect(
        "fault-in-another-phase",
        "Rank 2 was killed in the forward pass, not at the end of the step.",
        _at(phase="forward"),
        "rank 2 was at step 6, phase forward",
    ),
    _defect(
        "fault-landed-twice",
        "The fault was made twice.",
        recorded(_again),
        "injected twice: 2 landings",
        verdict="fail",
    ),
    _defect(
        "fault-injected-again-after-resume",
        "The fault was made to the resumed job, too.",
        recorded(_again_after_resume),
        "injected twice: 1 landings, 2 injections",
        verdict="fail",
    ),
    _defect(
        "fault-made-to-the-new-process",
        "The fault was made to the new process of rank 2, too.",
        recorded(_to_the_new_process),
        "injected twice: 1 landings, 2 injections",
        base="arf",
        verdict="fail",
    ),
    _defect(
        "fault-of-another-signal-sent",
        "The harness has recorded that it sent SIGTERM, and the rank was ended by SIGKILL.",
        recorded(lambda records: records.first("fault.injecting").update(signal=15)),
        "SIGTERM was sent, not SIGKILL",
        base="exit",
    ),
    _defect(
        "landing-of-another-launch",
        "The landing of the fault is recorded in the next launch.",
        recorded(lambda records: records.first("fault.landed").update(attempt="resume")),
        "the landing is of attempt resume",
    ),
    _defect(
        "exit-of-another-process",
        "The exit status belongs to a later process with the PID of the killed process.",
        recorded(_exit_of_another_process),
        "is not that of the process that was hit: its start time differs",
        base="exit",
    ),
    _defect(
        "fault-raised-again-after-repair",
        "The memory error was raised again in the step that was trained again.",
        recorded(_raised_again),
        "raised more than once on rank 1",
        base="uce",
        verdict="fail",
    ),
    _defect(
        "fault-not-raised",
        "The order for a memory error was given, and the device layer raised none.",
        recorded(lambda records: records.drop(records.all("fault.raised"))),
        "rank 1's own history",
        base="uce",
    ),
    _defect(
        "fault-with-another-error",
        "The communication error has a code that HCCL's own retry can cure.",
        recorded(lambda records: records.first("fault.raised").update(text="HCCL error, error_code=507018.")),
        "rank 1",
        base="hcce",
    ),
    _defect(
        "launcher-hit",
        "The launcher was killed instead of the rank.",
        recorded(_launcher_hit),
        "was the launcher and not rank 2",
    ),
    _defect(
        "pid-used-again",
        "The killed process had the number of the rank, and another start time.",
        recorded(_another_pid),
        "is not proven to be the one identified as rank 2: its start time differs",
    ),
    _defect(
        "killed-rank-ends-by-itself",
        "The killed rank ended with an exit code.",
        recorded(lambda records: records.end(records.last("rank.exit", attempt="train", rank=2), signal=None, code=1)),
        "rank 2 exit code 1, not killed by SIGKILL",
    ),
    _defect(
        "killed-by-another-signal",
        "The rank was ended by SIGTERM.",
        recorded(lambda records: _evidence(records).update(signal=15)),
        "the evidence for rank 2 shows SIGTERM, not SIGKILL",
    ),
    _defect(
        "killed-rank-goes-on",
        "The killed rank begins another step.",
        recorded(_lives_on),
        "rank 2 went on after the barrier: step.begin",
    ),
    _defect(
        "nothing-taken-away",
        "The fault that takes files away took none.",
        recorded(lambda records: records.last("fault.landed")["evidence"][0].update(removed=[])),
        "the evidence names no checkpoint that rank 2 has lost",
        base="slices",
    ),
)
