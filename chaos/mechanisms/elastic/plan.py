"""ELASTIC: torchrun ends all ranks when one has failed, and starts all again, as often as ``--max-restarts`` allows.

The script goes on from its newest checkpoint. Source: PyTorch, torchrun (Elastic Launch): on failures or membership
changes all surviving workers are killed, so that a script has to save its progress.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.mechanisms.all_ranks_plan import Restarter, refuse_others, restarted
from chaos.plan.describe import are_lost, ranks
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Answer, Context
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario

NAME = "ELASTIC"

DOCUMENT = "PyTorch, Elastic Launch"

GROUP_TIMEOUT = "job.torchrun.group_timeout"

_RESTARTER = Restarter(name=NAME, actor="torchrun", short="torchrun", ends="stops", source=DOCUMENT, saver_unknown=True)


JOIN = "job.torchrun.join_timeout"

JOIN_TIMEOUT = 600.0
"""torchrun's own join timeout in seconds (``RendezvousTimeout`` of PyTorch 2.1 to 2.13)."""

SHUTDOWN = 30.0
"""Seconds from torchrun's SIGTERM to its SIGKILL (``SubprocessContext._close`` of PyTorch 2.1 to 2.13)."""


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return a restart of all ranks; None where ELASTIC is off. Past the limit of restarts, torchrun ends the job."""
    if NAME not in context.on:
        return None
    refuse_others(context, _RESTARTER)
    if any(takes_node(fault.fault) for fault in incident.faults):
        return _node_lost(context, incident)
    _check_noticed(context, incident)
    found = restarted(context, incident, _RESTARTER)
    _check_counted(context, found)
    noticed = _noticed(context.scenario, incident)
    return replace(found, how=f"{noticed}; {found.how}") if noticed and found.how else found


def takes_node(fault: PlannedFault) -> bool:
    """Return whether a fault ends the launcher of a node, with all of its ranks."""
    return fault.effect.ends and fault.parameters.get("with") == "launcher"


def join_timeout(scenario: Scenario) -> float:
    """Return the seconds for which the launchers of the other nodes wait for a node that has gone."""
    return scenario.job.torchrun.join_timeout or JOIN_TIMEOUT


def _node_lost(context: Context, incident: Incident) -> Answer:
    """Return the end of the job: the launchers of the other nodes wait for the node that has gone, and give up."""
    scenario, cause = context.scenario, incident.first.path
    wait, given = join_timeout(scenario), scenario.deadlines.end
    if wait + SHUTDOWN > given:
        context.problems.add(
            f"{cause}.parameters.with",
            f"the launchers of the other nodes wait {wait:g} s for the node that has gone ({JOIN}), and everything "
            f"ends {given:g} s after the fault at the latest (deadlines.end)",
            text="launcher",
            hint=f"write a shorter {JOIN}, or a longer deadlines.end",
        )
    why = (
        f"{are_lost(incident.hit)}, and with them the torchrun of their node, which nothing starts again; the others "
        f"stop their ranks, wait {wait:g} s for the node ({JOIN}) and then end the job ({DOCUMENT})"
    )
    return Answer(None, why, cause, ends=True, loss=context.loss(incident), dead=incident.hit)


def _check_counted(context: Context, found: Answer) -> None:
    """Note a job of several nodes that is to come to its limit of restarts: each torchrun counts its own."""
    if found.ends and found.recovery is None and found.dead and context.scenario.cluster.nodes > 1:
        context.problems.add(
            "job.restart_limit",
            "each torchrun counts the restarts that its own ranks have caused, and which of them fail first depends on "
            "timing, so it is not known after which fault the job ends",
            text=str(context.scenario.job.restart_limit),
            hint="use nodes: 1, or a higher limit",
        )


def is_silent(fault: Scheduled) -> bool:
    """Return whether the ranks of a fault live on in silence."""
    return fault.effect.suspends or fault.effect.hangs


def leaves_well(fault: Scheduled) -> bool:
    """Return whether the ranks of a fault end with exit code 0, as if they had trained to the end."""
    return fault.effect.ends and fault.fault.parameters.get("code") == 0


def awaits_timeout(scenario: Scenario, fault: Scheduled) -> bool:
    """Return whether a fault is noticed only when the collectives of the other ranks give up.

    gloo reports a closed connection at once. The collectives of a device wait for the timeout of their process group:
    a watchdog looks at it (PyTorch, ProcessGroupNCCL; torch_npu, ProcessGroupHCCL). It was not seen.
    """
    return is_silent(fault) or (scenario.job.device != "CPU" and leaves_well(fault))


def group_timeout(scenario: Scenario) -> float:
    """Return the stated timeout of the process group in seconds; 0 where the scenario states none."""
    return scenario.job.torchrun.group_timeout or 0.0


def _noticed(scenario: Scenario, incident: Incident) -> str:
    """Return who notices faults that torchrun does not notice by itself; empty where it does."""
    silent = [fault for fault in incident.faults if awaits_timeout(scenario, fault)]
    quiet = [fault for fault in incident.faults if leaves_well(fault)]
    if silent:
        text = (
            f"torchrun takes no notice of {ranks(silent[0].fault.ranks)}, until the collectives of the other ranks "
            f"give up after {group_timeout(scenario):g} s ({GROUP_TIMEOUT}) and these ranks end"
        )
        stopped = any(fault.effect.suspends for fault in silent)
        return f"{text}; a stopped rank ends by SIGKILL only, {SHUTDOWN:g} s after SIGTERM" if stopped else text
    if quiet:
        return (
            f"torchrun takes exit code 0 of {ranks(quiet[0].fault.ranks)} for the end of the training, until the other "
            "ranks lose their connections and end"
        )
    return ""


def _check_noticed(context: Context, incident: Incident) -> None:
    """Note ranks that only other ranks can notice, where nothing says when these give up."""
    scenario = context.scenario
    unnoticed = [fault for fault in incident.faults if awaits_timeout(scenario, fault)]
    if not unnoticed or group_timeout(scenario):
        return
    fault = unnoticed[0]
    context.problems.add(
        f"{fault.path}.kind",
        f"torchrun takes no notice of {ranks(fault.fault.ranks)} until the collectives of the other ranks time out, "
        "and the scenario does not say when (PyTorch's default: 30 min with gloo, 10 min with other backends)",
        text=fault.fault.kind,
        hint=f"give init_process_group a short timeout in the script, and write it as {GROUP_TIMEOUT}",
    )
