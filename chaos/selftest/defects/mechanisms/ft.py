"""Defects of replica groups of torchft: a group with another state, votes that do not add up, and a heal that was none.

The run is recorded, since torchft is installed on few machines.
"""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Record, Records, recorded

BASE = "torchft-kill-group"

_GROUPS, _LOST, _KILLED_AFTER, _LAST = 3, 1, 6, 24
_OTHERS = tuple(group for group in range(_GROUPS) if group != _LOST)

_LATER = 20
"""A step in which all groups train again."""


_defect = partial(file_defect, base=BASE, check="mechanism")
_consistency = partial(file_defect, base=BASE, check="consistency")


def _new(records: Records) -> int:
    """Return the process of the lost group that was started again."""
    return int(records.last("agent.start", rank=_LOST)["pid"])


def _heal(records: Records) -> Record:
    return records.first("step.voted", rank=_LOST, healed=True)


def _alone(records: Records) -> int:
    """Return the first step that the other groups commit without the lost one."""
    return _KILLED_AFTER + 1


def _without_state(records: Records) -> None:
    """Let the group commit its first step as if nothing had to be healed."""
    _heal(records)["healed"] = False
    records.drop([*records.all("train.begin", pid=_new(records)), *records.all("initial", pid=_new(records))])


def _healed_with(changes: dict[str, str] | None) -> Mutate:
    """Return a mutation: the first state of the new process has another value, or that of no step at all."""

    def change(records: Records) -> None:
        state = records.first("initial", pid=_new(records))["parameters"]
        names = sorted(state) if changes is None else sorted(changes)
        for name in names:
            state[name] = "0" * 32 if changes is None else changes[name]

    return recorded(change)


def _moments_lost(records: Records) -> None:
    state = records.first("initial", pid=_new(records))["parameters"]
    for name in state:
        if "exp_avg" in name:
            state[name] = "0" * 32


def _drifts(records: Records) -> None:
    """Let a weight of the healed group differ in one step long after the heal."""
    parameters = records.digest(_LOST, _LATER)["parameters"]
    parameters[sorted(parameters)[0]] = "f" * 32


def _one_moment_differs(records: Records) -> None:
    parameters = records.digest(_OTHERS[1], _LATER)["parameters"]
    parameters[next(name for name in sorted(parameters) if "exp_avg" in name)] = "f" * 32


def _too_few(records: Records) -> None:
    """Let the others commit the step without the lost group though the manager asks for three."""
    for group in _OTHERS:
        records.first("step.voted", rank=group, step=_alone(records))["least"] = _GROUPS


def _alone_in_quorum(records: Records) -> None:
    """Let one group commit a step by itself: it has not heard of the other one."""
    vote = records.first("step.voted", rank=_OTHERS[0], step=_alone(records))
    vote.update(participants=1)


def _batch_lost(records: Records) -> None:
    """Let a group commit a step in which its own samples were left out, and all count it as a participant."""
    records.first("step.voted", rank=_OTHERS[1], step=_LATER)["contributes"] = False


def _counted_twice(records: Records) -> None:
    """Let every group count one participant less than those that contributed: the mean is over too few."""
    for group in range(_GROUPS):
        records.first("step.voted", rank=group, step=_LATER)["participants"] = _GROUPS - 1


def _healing_counted(records: Records) -> None:
    """Let the gradients of the group that is being healed count, with the weights that it has just thrown away."""
    _heal(records)["contributes"] = True


def _step_again(records: Records) -> None:
    """Let a group that no fault hit commit a step a second time."""
    vote = records.first("step.voted", rank=_OTHERS[1], step=_LATER)
    records.insert(vote)


def _stands_still(records: Records) -> None:
    """Let every group hold after step 20 what it held after the step before, as without an update."""
    for group in range(_GROUPS):
        before = records.digest(group, _LATER - 1)["parameters"]
        records.digest(group, _LATER)["parameters"] = dict(before)


def _moments_unrecorded(records: Records) -> None:
    for group in range(_GROUPS):
        for step in range(_LATER, _LAST + 1):
            state = records.digest(group, step)["parameters"]
            for name in [name for name in state if "exp_avg" in name]:
                del state[name]


def _left_out_for_good(records: Records) -> None:
    """Let the group that is back commit every step, and contribute to none."""
    for vote in records.all("step.voted"):
        if vote["step"] > _alone(records):
            vote["participants"] = _GROUPS - 1
            vote["contributes"] = vote["rank"] != _LOST


def _others_stop(records: Records) -> None:
    """Let a group that no fault hit commit no step after the fault."""
    begin = records.first("fault.injecting")["mono"]
    records.drop([vote for vote in records.all("step.voted", rank=_OTHERS[1]) if vote["mono"] > begin])


def _not_started_again(records: Records) -> None:
    """Let the launcher leave the lost group alone."""
    new = _new(records)
    records.drop_file(f"train-rank_{_LOST}-{new}")
    records.drop([*records.all("rank.found", pid=new), *records.all("rank.exit", pid=new)])


def _another_launcher(records: Records) -> None:
    records.last("rank.found", rank=_LOST)["ppid"] = 77


def _no_votes(records: Records) -> None:
    records.drop(records.all("step.voted"))


def _votes_of_a_step_gone(records: Records) -> None:
    records.drop(records.all("step.voted", step=_LATER))


def _share_gone(records: Records) -> None:
    del records.first("step.voted", rank=0, step=_LATER)["participants"]


def _digests_gone(records: Records) -> None:
    records.drop(records.all("digest", step=_LATER))


DEFECTS = (
    _defect(
        "ft-not-healed",
        "The group that is back commits its first step with a state of its own.",
        recorded(_without_state),
        "a group that is back goes on with the state of another group after the same step",
        "without a state from another",
    ),
    _defect(
        "ft-healed-with-another-state",
        "The group that is back goes on with another state than the others have.",
        _healed_with(None),
        "went on after step",
        "with another state than rank",
    ),
    _defect(
        "ft-moments-not-healed",
        "The group that is back has the weights of the others, and moments of its own.",
        recorded(_moments_lost),
        "with another state than rank",
        "optimizer.exp_avg",
    ),
    _consistency(
        "ft-replica-drifts-after-the-heal",
        "A weight of the healed group differs from that of the others in step 20.",
        recorded(_drifts),
        "ranks 0 and 1 disagree after step 20",
    ),
    _consistency(
        "ft-moment-of-a-replica-differs",
        "A moment of a group that no fault hit differs in step 20.",
        recorded(_one_moment_differs),
        "ranks 0 and 2 disagree after step 20",
    ),
    _defect(
        "ft-commit-without-quorum",
        "The others commit step 7 with two groups, and the manager asks for three.",
        recorded(_too_few),
        "no step is committed by fewer groups than the manager's min_replica_size",
        "committed step 7 with 2 participants, and min_replica_size is 3",
    ),
    _defect(
        "ft-commit-alone",
        "A group commits step 7 by itself.",
        recorded(_alone_in_quorum),
        "rank 0 committed step 7 with 1 participants, and min_replica_size is 2",
    ),
    _defect(
        "ft-dropped-batch-not-counted",
        "The samples of a group are dropped in step 20, and the others count it as a participant.",
        recorded(_batch_lost),
        "the participants that torchft counts in a step are the groups that commit it",
        "counts 3 participants in step 20; 2 contributed",
        verdict="unknown",
    ),
    _defect(
        "ft-mean-over-too-few",
        "All groups take the mean of step 20 over two groups, and three contributed.",
        recorded(_counted_twice),
        "counts 2 participants in step 20; 3 contributed",
    ),
    _defect(
        "ft-gradients-of-the-healing-group-count",
        "The gradients of the group that gets its state in this step are added to those of the others.",
        recorded(_healing_counted),
        "the participants that torchft counts in a step are the groups that commit it",
        "contributed",
    ),
    _defect(
        "ft-step-committed-twice",
        "A group that no fault hit commits step 20 twice.",
        recorded(_step_again),
        "committed step 20 again, so what was trained since then is lost",
    ),
    _defect(
        "ft-update-left-out-by-all",
        "No weight and no moment of any group changes in step 20, which all commit.",
        recorded(_stands_still),
        "the steps that a group commits change its weights and moments, as in the fault-free run",
        "no weight and no moment of rank 0 changed from step 19 to step 20",
    ),
    _defect(
        "ft-returned-group-never-contributes",
        "The group that is back commits all steps to the last, and its samples are dropped in each.",
        recorded(_left_out_for_good),
        "the last step is trained by as many groups as any step before it",
        "step 24 was trained by 2 of 3 groups, not by rank 1",
    ),
    _defect(
        "ft-others-stand-still",
        "No step of a group that no fault hit is recorded after the fault.",
        recorded(_others_stop),
        "the other groups train on",
        "no step that rank 2's process has committed after the fault is recorded",
        verdict="unknown",
    ),
    file_defect(
        "ft-group-not-started-again",
        "The launcher does not start the lost group again.",
        recorded(_not_started_again),
        "the last step that rank 1 trained is step 6",
        base=BASE,
        check="resume",
    ),
    _defect(
        "ft-under-another-launcher",
        "The new process of the lost group is not a child of the launcher.",
        recorded(_another_launcher),
        "is a child of process 77, not of launcher",
    ),
    _defect(
        "ft-no-vote-recorded",
        "No vote on any step is recorded.",
        recorded(_no_votes),
        "no committed step is recorded",
        verdict="unknown",
    ),
    _defect(
        "ft-votes-of-a-step-missing",
        "The votes on step 20 are not recorded.",
        recorded(_votes_of_a_step_gone),
        "no commit of step 20 is recorded",
        verdict="unknown",
    ),
    _defect(
        "ft-participants-not-recorded",
        "A vote does not say how many groups took part.",
        recorded(_share_gone),
        "the vote of rank 0 on step 20 does not say how many groups took part",
        verdict="unknown",
    ),
    _defect(
        "ft-moments-not-recorded",
        "From step 20 on the state of all groups is recorded without the moments.",
        recorded(_moments_unrecorded),
        "the state of every group after each step that it commits is recorded",
        "the state of rank 0 after step 20 is recorded without optimizer.exp_avg.0",
        verdict="unknown",
    ),
    _defect(
        "ft-state-of-a-step-missing",
        "The state of all groups after step 20 is not recorded.",
        recorded(_digests_gone),
        "the state of every group after each step that it commits is recorded",
        "no state of rank 0 after step 20 is recorded",
        verdict="unknown",
    ),
)
