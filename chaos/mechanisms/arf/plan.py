"""ARF: process-level rescheduling. Lost ranks are started again, the others live on, the state comes from replicas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.plan.describe import are_lost, ranks
from chaos.plan.parts.response import Recovery
from chaos.plan.problems import Problems
from chaos.plan.recovery.handlers import sharing, spoilers
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import PROVE_NONE, Answer, Context
from chaos.plan.recovery.steps import Loss
from chaos.plan.recovery.vendor import MINDSPORE
from chaos.plan.rules.constraints import CONTROLLER_RANK
from chaos.plan.schedule import Scheduled
from chaos.plan.topology.survive import survive
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

STRATEGIES = frozenset({"recover", "recover-in-place"})
"""The strategies by which the cluster's agent starts lost ranks again."""


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return a rescheduling of the lost ranks; None where ARF is off or the SDK does not offer it."""
    scenario = context.scenario
    if "ARF" not in context.on:
        return None
    loss = context.loss(incident)
    lost = _lost(incident)
    if incident.failed and not _only_unclean(incident):
        return _too_late(context, incident, lost, loss)
    if not lost or _not_offered(context, incident, lost, loss):
        return None
    moved = _moved_along(context, incident, lost)
    lost = tuple(sorted((*lost, *moved)))
    if not _is_chosen(context, lost):
        return None
    cause, step = incident.first.path, None if loss.at is None else context.last_update(loss.at.last_complete)
    if not scenario.job.agent:
        why = (
            f"{are_lost(lost)} and ARF is tried, but without job.agent nothing restarts a lost rank: when the SDK's "
            "wait for new processes expires, the next mechanism acts"
        )
        recovery = Recovery("ARF", incident.ids, step, succeeds=False, copied=lost)
        return Answer(recovery, why, cause, left=incident.after("ARF", ()))
    spoilt = spoilers(context, incident, "ARF", _entered(context, incident, lost), apart_from=moved)
    _check_spoilers(context, spoilt, moved)
    if spoilt:
        why = f"{are_lost(lost)} and ARF starts {ranks(lost)} again, but fails: {_spoils(spoilt)}"
        recovery = Recovery("ARF", incident.ids, step, succeeds=False, restarted=lost, copied=lost)
        return Answer(recovery, why, spoilt[0].path, left=replace(incident.after("ARF", spoilt), replaced=lost))
    _check_replaced(context, incident, lost, loss)
    why = (
        f"{are_lost(lost)}, and ARF starts only {ranks(lost)} again ({context.vendor.document}): the others keep their "
        "processes, the groups are rebuilt, and the new processes get the state of their replicas"
    )
    if incident.failed:
        why = f"{incident.failed[-1]} has failed; {why}"
    recovery = Recovery("ARF", incident.ids, step, restarted=lost, copied=lost)
    back = "" if loss.at is None else context.goes_back(loss.at.last_complete)
    return Answer(recovery, why, cause, how=back or _how(incident, lost, loss))


def _is_chosen(context: Context, lost: Sequence[int]) -> bool:
    """Return whether the chooser takes a rescheduling: the cluster's agent, or the controller where there is none."""
    job = context.scenario.job
    if not job.agent:
        return job.controller != "outside"  # without an agent the controller asks nobody, and saves
    if not STRATEGIES.intersection(job.strategies):
        return False  # the agent chooses another strategy
    # In place, processes of one node only are started again.
    return "recover" in job.strategies or _nodes(context, lost) <= 1


def _check_spoilers(context: Context, spoilt: Sequence[Scheduled], moved: Sequence[int]) -> None:
    """Note faults meant for a process that may be gone, since its node is moved."""
    for fault in spoilt:
        if hit := set(moved).intersection(fault.fault.ranks):
            context.problems.add(
                f"{fault.path}.trigger",
                f"with strategy recover the node of {ranks(sorted(hit))} is moved as a whole, so the process that "
                f"should run handler {fault.handler} may be gone when it is called",
                text=fault.handler or "",
                hint="target a rank of a node that loses none, or write job.strategies without recover",
            )


def _check_replaced(context: Context, incident: Incident, lost: Sequence[int], loss: Loss) -> None:
    """Note a rescheduling that leaves no replica of some state, and a rescheduling whose step is not known."""
    if survive(context.groups, lost).lost:
        context.problems.add(
            "cluster.nodes",
            f"with strategy recover the containers of the lost ranks' nodes are moved as a whole, so {ranks(lost)} "
            "get new processes and some state has no replica left: the outcome is not yet planned",
            hint="write job.strategies without recover, or lose ranks whose nodes leave a replica of every rank alone",
        )
    if loss.at is None:
        context.problems.add(
            f"{incident.first.path}.trigger",
            "the trigger leaves the step open, so it is not known after which step ARF lets the training go on",
            hint="give the step and the phase",
        )


def check_chooser(scenario: Scenario, faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note the lack of a chooser: the online repair must be preferred to the replacement of the rank."""
    framework = (traits.vendor or MINDSPORE).framework
    job = scenario.job
    if "ARF" not in job.protection or job.agent or job.controller != "rank 0":
        return
    for fault in faults:
        if fault.raised:
            problems.add(
                "job.protection",
                f"{ranks(fault.fault.ranks)} has a {fault.effect} ({problems.where(fault.path)}) and ARF is on, but "
                f"without job.agent {framework} itself chooses the last strategy that the SDK offers, which then waits "
                "for a new rank that nothing starts",
                text="ARF",
                hint="set job.agent: true, or take ARF out of job.protection",
            )


def _entered(context: Context, incident: Incident, lost: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the ranks on which the SDK calls each handler.

    An online repair that was tried before has stopped all ranks.
    """
    left = tuple(rank for rank in range(context.scenario.cluster.ranks) if rank not in lost)
    stopped = () if incident.failed else left
    return {"stop": stopped, "clean": stopped, "rebuild_group": left, "repair": sharing(context.groups, lost)}


def _lost(incident: Incident) -> tuple[int, ...]:
    """Return the ranks whose processes are replaced: lost ones, those with an unrepaired error, and unclean ones."""
    return tuple(sorted({*incident.hit, *(rank for fault in incident.spoilt for rank in fault.fault.ranks)}))


def _moved_along(context: Context, incident: Incident, lost: Sequence[int]) -> tuple[int, ...]:
    """Return healthy ranks that get a new process too: with recover the cluster moves a node's container as a whole.

    With recover-in-place it leaves the container where it is, unless processes of several nodes are lost.
    """
    job, cluster = context.scenario.job, context.scenario.cluster
    # A process fault: its process is gone, or its state is not known, which no memory repair mends.
    lost_process = incident.silent or any(fault.effect.loses_track for fault in incident.faults)
    if not job.agent or cluster.nodes == 1 or "recover" not in job.strategies or not lost_process:
        return ()
    size = cluster.ranks // cluster.nodes
    nodes = {rank // size for rank in lost}
    if "recover-in-place" in job.strategies and _nodes(context, lost) == 1:
        return ()
    return tuple(rank for rank in range(cluster.ranks) if rank // size in nodes and rank not in lost)


def _nodes(context: Context, lost: Sequence[int]) -> int:
    """Return the number of nodes that the lost ranks are on."""
    cluster = context.scenario.cluster
    return len({rank * cluster.nodes // cluster.ranks for rank in lost})


def _only_unclean(incident: Incident) -> bool:
    """Return whether the online repair failed only on devices that say they could not be cleaned (code 405).

    MindSpore's handler asks only the device of a rank with a memory error; any other error in it is an exception, after
    which the SDK lets the job exit (code 499).
    """
    asked = {rank for fault in incident.faults if fault.effect.of_memory for rank in fault.fault.ranks}
    return all(
        fault.handler == "clean" and fault.effect.of_memory and asked.issuperset(fault.fault.ranks)
        for fault in incident.spoilt
    )


def _too_late(context: Context, incident: Incident, lost: tuple[int, ...], loss: Loss) -> Answer:
    """Return the end of the job after any other failure of an online repair.

    The ranks may have changed their state (code 499).
    """
    spoilt = incident.spoilt[0]
    failure = f"{incident.failed[-1]} has failed because of fault {spoilt.fault.id} at handler {spoilt.handler}"
    why = (
        f"{failure}. After a failed repair ARF replaces only ranks with a memory error whose device says that it "
        "cannot be cleaned; else the SDK lets the job exit and saves nothing, since ranks may have changed their state"
    )
    if context.scenario.expect.checkpoint != "none":
        context.problems.add(f"{spoilt.path}.trigger", why, text=spoilt.handler or "", hint=PROVE_NONE)
    return Answer(None, why, spoilt.path, ends=True, loss=loss, dead=lost)


def _not_offered(context: Context, incident: Incident, lost: Sequence[int], loss: Loss) -> bool:
    """Return whether nothing can be rebuilt: no copy of some state, no trained step, nothing left, or no controller."""
    scenario = context.scenario
    hosted = scenario.job.controller == "rank 0" and not scenario.job.agent
    return (
        bool(survive(context.groups, lost).lost)
        or context.last_update(loss.highest) < 1
        or (loss.at is not None and loss.at.last_complete >= scenario.job.steps)
        or (hosted and CONTROLLER_RANK in incident.silent)
    )


def _spoils(spoilt: Sequence[Scheduled]) -> str:
    return "; ".join(
        f"fault {fault.fault.id} ({fault.fault.kind}) strikes {ranks(fault.fault.ranks)} at the entry of handler "
        f"{fault.handler}"
        for fault in spoilt
    )


def _how(incident: Incident, lost: Sequence[int], loss: Loss) -> str:
    """Return why training goes on after this step."""
    if loss.at is None:
        return (
            "the trigger leaves the step open: training goes on after the last step that all survivors have trained, "
            f"one of {max(1, loss.lowest)} to {loss.highest}"
        )
    who, point = ranks(lost), loss.at
    if point.contributed:
        return (
            f"{who} fell out at {point}, behind the all-reduce: the others finish step {point.step} and block in step "
            f"{point.step + 1}, so all go on after step {point.step}, {who} with the state of a replica"
        )
    return (
        f"{who} fell out at {point}, before the gradients were in: no rank can finish step {point.step}, so all go on "
        f"after step {point.last_complete}, and step {point.step} is replayed"
    )
