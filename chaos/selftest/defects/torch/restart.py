"""Defects of the restart of all ranks by torchrun, and of the fault that it follows."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded

_RANKS, _VICTIM, _STEP = 3, 1, 6


_defect = partial(file_defect, base="live-torch-elastic", check="mechanism")
_hygiene = partial(file_defect, base="live-torch-elastic", check="hygiene")
_injection = partial(file_defect, base="live-torch-elastic", check="injection", verdict="unknown")


def old_end(records: Records, rank: int) -> Record:
    """Return the end of a rank's process before the restart."""
    return records.first("rank.exit", rank=rank)


def ended(rank: int, *, new: bool = False, **status: object) -> Mutate:
    """Return a mutation: a rank ended otherwise before the restart, by the kernel's record and by torchrun's.

    ``new``: its new process did.
    """

    def change(records: Records) -> None:
        end = records.last("rank.exit", rank=rank) if new else old_end(records, rank)
        records.end(end, **status)

    return recorded(change)


def _keeps_its_process(records: Records) -> None:
    """Let rank 0 keep its process."""
    old, new = records.first("rank.found", rank=0)["pid"], records.last("rank.found", rank=0)["pid"]
    records.drop([record for record in records.all(rank=0, pid=new) if record["event"] in ("rank.found", "rank.exit")])
    records.drop([*records.all("rank.exit", rank=0), *records.all("child.exit", child_pid=new)])
    for record in records.all(rank=0, pid=new):
        record["pid"] = old
    records.insert(records.all("rank.exit", rank=1)[-1], rank=0, pid=old)


def _nobody_again(records: Records) -> None:
    """Let torchrun stop the ranks and start none."""
    for rank in range(_RANKS):
        new = records.last("rank.found", rank=rank)["pid"]
        records.drop_file(f"train-rank_{rank}-{new}")
        records.drop([*records.all(rank=rank, pid=new), *records.all("child.exit", child_pid=new)])


def _too_early(records: Records) -> None:
    """Start rank 1 again before rank 0 has ended."""
    late, new = records.first("child.exit", child_rank=0), records.last("agent.start", rank=1)
    records.delay(late["mono"], new["mono"] + 1000 - late["mono"], files="train-launcher")


def _fails_once(records: Records) -> None:
    """Let a second start of the ranks end before its first step, and a third one train."""
    last = max((old_end(records, rank) for rank in range(_RANKS)), key=lambda end: int(end["mono"]))
    pids = {rank: old_end(records, rank)["pid"] + 50_000 for rank in range(_RANKS)}
    kept = [
        {key: value for key, value in records.first(event, rank=rank).items() if key not in ("mono", "wall")}
        for event in ("rank.found", "rank.exit")
        for rank in range(_RANKS)
    ]
    begun: dict[int, Record] = {}
    for values in kept:
        failed = {"signal": None, "code": 1} if values["event"] == "rank.exit" else {}
        last = records.insert(last, **{**values, **failed, "pid": pids[values["rank"]]})
        begun.setdefault(values["rank"], {key: last[key] for key in ("mono", "wall")})
    for rank, pid in pids.items():
        starts = [records.first(event, rank=rank) for event in ("writer.start", "agent.start")]
        records.files[f"train-rank_{rank}-{pid}.jsonl"] = [{**start, **begun[rank], "pid": pid} for start in starts]


def _made_again(records: Records) -> None:
    """Make the fault to the new process of rank 1, too."""
    act, new = records.first("fault.injecting"), records.last("rank.found", rank=_VICTIM)
    kept = {key: value for key, value in act.items() if key not in ("mono", "wall")}
    records.insert(new, **{**kept, "pid": new["pid"], "start_time": new["start_time"]})


def _missed(records: Records) -> None:
    landed = records.first("fault.landed")
    missed = records.insert(landed, event="fault.missed", reason="the process was gone")
    for key in ("ranks", "step", "phase", "evidence"):
        missed.pop(key, None)
    records.drop([landed, *records.all("fault.injecting"), *records.all("fault.healed")])


def _in_another_rank(records: Records) -> None:
    process, landed = records.first("rank.found", rank=2), records.first("fault.landed")
    at = {"pid": process["pid"], "start_time": process["start_time"]}
    records.first("fault.injecting").update(rank=2, target_rank=2, **at)
    landed["ranks"] = [2]
    landed["evidence"][0].update(rank=2, pid=process["pid"])


def _a_step_later(records: Records) -> None:
    landed = records.first("fault.landed")
    landed["step"] = landed["evidence"][0]["barrier"]["step"] = _STEP + 1
    records.first("barrier.reached")["step"] = _STEP + 1


def _history_missing(event: str, rank: int, *, last: bool = False) -> Mutate:
    """Return a mutation: the history of a rank's process is missing, of its last one or of its first one."""

    def change(records: Records) -> None:
        process = (records.last if last else records.first)(event, rank=rank)
        records.drop_file(f"train-rank_{rank}-{process['pid']}")

    return recorded(change)


def _saves_unseen(records: Records) -> None:
    """Leave no trace of a save or a load, as of a script that writes its checkpoints without torch.save."""
    records.drop([record for record in records if record["event"].startswith(("checkpoint.", "load."))])


DEFECTS = (
    _defect(
        "elastic-end-not-recorded",
        "The end of rank 0 before the restart is not recorded.",
        recorded(lambda records: records.drop([old_end(records, 0)])),
        "no exit of rank 0 was recorded",
        verdict="unknown",
    ),
    _defect(
        "elastic-saves-not-recorded",
        "The script writes its checkpoints in a way that leaves no record.",
        recorded(_saves_unseen),
        "the last finished periodic checkpoint holds step 4",
        "no save of any rank is recorded",
        verdict="unknown",
    ),
    _defect(
        "elastic-rank-not-restarted",
        "Rank 0 was not started again.",
        recorded(_keeps_its_process),
        "rank 0 was not started again",
    ),
    _defect(
        "elastic-nobody-restarted",
        "torchrun starts no rank again.",
        recorded(_nobody_again),
        "torchrun stops all ranks and starts all again in recovery 1",
        "no rank was started again",
    ),
    _defect(
        "elastic-started-too-early",
        "Rank 1 was started again before rank 0 had ended.",
        recorded(_too_early),
        "all ranks have ended before one is started again",
        " had ended",
    ),
    _defect(
        "elastic-under-another-launcher",
        "The new process of rank 1 is not a child of torchrun.",
        recorded(lambda records: records.last("rank.found", rank=1).update(ppid=77)),
        "rank 1's new process",
        "is a child of process 77, not of launcher",
    ),
    _defect(
        "elastic-start-without-progress",
        "The first start after the fault fails at once, and only the next one trains.",
        recorded(_fails_once),
        "a start of all ranks that no fault hits trains further than the start before it",
        "start 2 came to no step and ended without a fault",
    ),
    file_defect(
        "elastic-end-not-collected",
        "torchrun's agent has not recorded the end of the killed process.",
        recorded(lambda records: records.drop([records.first("child.exit", child_rank=_VICTIM)])),
        "stop ≤ ",
        "the end is recorded for 2 of 3 ranks",
        base="live-torch-elastic",
        check="recovery",
        verdict="unknown",
    ),
    _hygiene(
        "elastic-survivor-ends-with-0",
        "Rank 0 ends with exit code 0 in the middle of the training.",
        ended(0, signal=None, code=0),
        "which was replaced, exit code 0",
    ),
    _hygiene(
        "elastic-launcher-killed",
        "torchrun ends by a signal when the training is over.",
        recorded(lambda records: records.last("launcher.exit").update(signal=9, code=None)),
        "the launcher of attempt train exits with 0",
        "ended by SIGKILL",
    ),
    _hygiene(
        "elastic-rank-fails-at-its-end",
        "Rank 2 trains to the end and ends with exit code 1.",
        ended(2, new=True, code=1),
        "rank 2 of attempt train ends with exit code 0",
        "exit code 1",
    ),
    _hygiene(
        "elastic-process-left",
        "A data worker of a rank is still there at the end.",
        recorded(lambda records: records.first("hygiene").update(orphans=[{"pid": 77, "cmdline": ["worker.py"]}])),
        "processes left: 77 (worker.py)",
    ),
    _injection(
        "elastic-fault-missed",
        "The process had ended before it could be killed, and torchrun restarted for another reason.",
        recorded(_missed),
        "the fault missed: the process was gone",
    ),
    _injection(
        "elastic-fault-in-another-rank",
        "Rank 2 was killed instead of rank 1.",
        recorded(_in_another_rank),
        "it landed on rank 2: the planned fault was not injected",
    ),
    _injection(
        "elastic-fault-a-step-later",
        "Rank 1 was killed one step later.",
        recorded(_a_step_later),
        "rank 1 was at step 7, phase forward: the planned fault was not injected",
    ),
    _injection(
        "elastic-fault-made-again",
        "The fault was made to the new process of rank 1, too.",
        recorded(_made_again),
        "injected twice: 1 landings, 2 injections",
        verdict="fail",
    ),
    _injection(
        "elastic-killed-rank-ends-by-itself",
        "The killed rank ended with an exit code.",
        ended(_VICTIM, signal=None, code=1),
        "rank 1 exit code 1, not killed by SIGKILL",
    ),
    _injection(
        "elastic-history-of-killed-process-missing",
        "The history of the killed process is missing.",
        _history_missing("rank.found", _VICTIM),
        "no history of rank 1 in attempt train, though its process",
        check="history",
    ),
    _injection(
        "elastic-history-of-new-process-missing",
        "The history of the new process of rank 2 is missing.",
        _history_missing("rank.found", 2, last=True),
        "no history of rank 2 in attempt train, though its process",
        check="history",
    ),
)
