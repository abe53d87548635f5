"""Defects of a replica group of torchft that is stopped for a time: it is back with another state, or replaced.

The run is recorded, since torchft is installed on few machines.
"""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import file_defect
from chaos.selftest.records import Record, Records, recorded

BASE = "torchft-suspend-between-steps"

_STOPPED, _OTHER = 1, 2
_LATER = 20
"""A step in which all groups train again."""

_OTHER_PID = 70_000

_defect = partial(file_defect, base=BASE, check="mechanism")
_injection = partial(file_defect, base=BASE, check="injection", verdict="unknown")


def _continued(records: Records) -> int:
    """Return the moment when the group is continued."""
    return int(records.first("fault.ending")["mono"])


def _back(records: Records, *events: str) -> list[Record]:
    """Return the records of the stopped group since it was continued."""
    since = _continued(records)
    own = [record for record in records.all(rank=_STOPPED) if record["mono"] > since]
    return [record for record in own if not events or record["event"] in events]


def _heal(records: Records) -> Record:
    return records.first("step.voted", rank=_STOPPED, healed=True)


def _state(records: Records) -> Record:
    """Return the state with which the group goes on."""
    return records.last("initial", rank=_STOPPED)


def _state_gone(records: Records) -> None:
    records.drop(_back(records, "train.begin", "initial"))


def _not_healed(records: Records) -> None:
    """Let the group go on with what it had before it was stopped."""
    _heal(records)["healed"] = False
    _state_gone(records)


def _another_state(records: Records) -> None:
    parameters = _state(records)["parameters"]
    parameters.update(dict.fromkeys(parameters, "0" * 32))


def _moments_lost(records: Records) -> None:
    parameters = _state(records)["parameters"]
    parameters.update({name: "0" * 32 for name in parameters if "exp_avg" in name})


def _drifts(records: Records) -> None:
    parameters = records.digest(_STOPPED, _LATER)["parameters"]
    parameters[sorted(parameters)[0]] = "f" * 32


def _gradients_count(records: Records) -> None:
    _heal(records)["contributes"] = True


def _others_stop(records: Records) -> None:
    begin = records.first("fault.injecting")["mono"]
    records.drop([vote for vote in records.all("step.voted", rank=_OTHER) if vote["mono"] > begin])


def _never_back(records: Records) -> None:
    records.drop(_back(records))


def _replaced(records: Records) -> None:
    """Let the stopped group be ended, and a new process take its place."""
    later = _back(records, "train.begin", "initial", "step.begin", "step.end", "digest", "step.voted", "train.end")
    found = records.first("rank.found", rank=_STOPPED)
    old = found["pid"]
    at = {"mono": later[0]["mono"] - 2000, "wall": later[0]["wall"] - 2000}
    starts = [records.first(event, rank=_STOPPED, pid=old) for event in ("writer.start", "agent.start")]
    begun = [{**start, **at, "pid": _OTHER_PID} for start in starts]
    records.drop(_back(records, *{record["event"] for record in later}))
    records.files[f"train-rank_{_STOPPED}-{_OTHER_PID}.jsonl"] = [
        *begun,
        *({**record, "pid": _OTHER_PID} for record in later),
    ]
    healed, end = records.first("fault.healed"), records.last("rank.exit", rank=_STOPPED)
    fields = {key: value for key, value in found.items() if key not in ("mono", "wall")}
    records.insert(healed, **{**fields, "pid": _OTHER_PID, "start_time": found["start_time"] + 3000})
    last = {key: value for key, value in end.items() if key not in ("mono", "wall")}
    records.insert(healed, **{**last, "signal": 9, "code": None})
    collected = records.first("child.exit", child_pid=old)
    records.insert(collected, child_pid=_OTHER_PID, start_time=found["start_time"] + 3000)
    collected.update(signal=9, code=None)
    end.update(pid=_OTHER_PID, start_time=found["start_time"] + 3000)


def _let_go_at_once(records: Records) -> None:
    """Let the group be continued just behind the stop."""
    ending = records.first("fault.ending")
    fields = {key: value for key, value in ending.items() if key not in ("mono", "wall")}
    records.insert(records.first("fault.landed"), **fields)
    records.drop([ending])


def _acts_while_stopped(records: Records) -> None:
    """Let the group record a step five seconds after it was stopped."""
    vote = records.first("step.voted", rank=_STOPPED, step=6)
    at = records.first("fault.landed")["mono"] + 5_000_000_000
    reached = records.first("barrier.reached", rank=_STOPPED)
    fields = {key: value for key, value in vote.items() if key not in ("mono", "wall")}
    records.insert(reached, **{**fields, "step": 7, "mono": at, "wall": reached["wall"] + 5_000_000_000})


DEFECTS = (
    _defect(
        "ft-suspended-not-healed",
        "The group that was stopped commits a step with the state that it had before.",
        recorded(_not_healed),
        "a group that is back goes on with the state of another group after the same step",
        "rank 1, continued, committed step",
        "without a state from another",
    ),
    _defect(
        "ft-suspended-healed-with-another-state",
        "The group that was stopped goes on with another state than the others have.",
        recorded(_another_state),
        "with another state than rank",
    ),
    _defect(
        "ft-suspended-moments-not-healed",
        "The group that was stopped has the weights of the others, and moments of its own.",
        recorded(_moments_lost),
        "with another state than rank",
        "optimizer.exp_avg",
    ),
    _defect(
        "ft-suspended-drifts-after-the-heal",
        "A weight of the group that was stopped differs from that of the others in step 20.",
        recorded(_drifts),
        "ranks 0 and 1 disagree after step 20",
        check="consistency",
    ),
    _defect(
        "ft-suspended-gradients-count",
        "The gradients of the group that gets its state in this step are added to those of the others.",
        recorded(_gradients_count),
        "the participants that torchft counts in a step are the groups that commit it",
        "contributed",
    ),
    _defect(
        "ft-suspended-others-stand-still",
        "No step of a group that was not stopped is recorded after the fault.",
        recorded(_others_stop),
        "no step that rank 2's process has committed after the fault is recorded",
        verdict="unknown",
    ),
    _defect(
        "ft-suspended-never-back",
        "The group that was stopped trains no further step.",
        recorded(_never_back),
        "the last step that rank 1 trained is step 6",
        check="resume",
    ),
    _defect(
        "ft-suspended-replaced",
        "The group that was stopped is killed, and a new process takes its place.",
        recorded(_replaced),
        "rank 1 was replaced",
    ),
    _defect(
        "ft-suspended-state-not-recorded",
        "The state with which the stopped group goes on is not recorded.",
        recorded(_state_gone),
        "no state of rank 1's continued process is recorded",
        verdict="unknown",
    ),
    _injection(
        "ft-suspended-end-not-recorded",
        "Nothing shows how long the group was stopped.",
        recorded(lambda records: records.drop(records.all("fault.ending"))),
        "its end is not recorded; planned was 20 s",
    ),
    _injection(
        "ft-suspended-let-go-at-once",
        "The group was continued at once.",
        recorded(_let_go_at_once),
        "it was planned for 20 s, but ended",
    ),
    _injection(
        "ft-suspended-trains-meanwhile",
        "The group records a step while it is stopped.",
        recorded(_acts_while_stopped),
        "rank 1 went on after the landing: step.voted",
    ),
)
