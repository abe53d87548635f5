"""TCP ports of a job by words: the ports that a kind of job knows, and their nodes.

The harness gives a job its ports anew in every run, so a scenario that names one says what it is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.planned_kind import parameters_of
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NEEDS, switched_on
from chaos.plan.rules.parameters import Parameter
from chaos.plan.topology.layout import Layout
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

CONTROLLER, SCHEDULER, COMMUNICATOR = "controller", "scheduler", "communicator"

PORT = Parameter(
    "a TCP port of the targets' nodes",
    words=(CONTROLLER, SCHEDULER, COMMUNICATOR),
    least=1,
    most=65535,
    whole=True,
    required=True,
)

RESET_PORT = replace(
    PORT,
    about="the TCP port at one end of the connections",
    words=(CONTROLLER, SCHEDULER),
)

_MASTER = 0
"""The node of the scheduler and the controller."""


def check_ports(draft: Draft, problems: Problems) -> None:
    """Note ports that the job does not have, and ports that are on no node of the targets."""
    known = parameters_of(draft.kinds)
    for fault in draft.faults:
        named, parameter = fault.fault.parameters.get("port"), known.get(fault.fault.kind, {}).get("port")
        if parameter not in (PORT, RESET_PORT) or named not in parameter.words:
            continue
        reason = _not_known(named, draft.scenario, draft.traits)
        if reason is None and parameter is PORT:
            reason = _not_there(named, draft.layout, fault.fault.ranks, draft.traits)
        if reason is None and parameter is RESET_PORT:
            reason = _believed(named, draft.scenario)
        if reason is not None:
            message, hint = reason
            problems.add(f"{fault.path}.parameters.port", message, text=named, hint=hint)


def _not_known(named: str, scenario: Scenario, traits: JobTraits) -> tuple[str, str] | None:
    """Return why the job has no such port, and what to do."""
    words = sorted((*traits.ports, *traits.own_ports))
    if named not in words:
        hint = f"write {' or '.join([*words, 'the number of a port'])}"
        return f"of a job of kind {scenario.job.kind} no port is known as {named!r}", hint
    on = switched_on(scenario.job.protection)
    if named == CONTROLLER and not scenario.job.agent and not any(mechanism in NEEDS["MindIO"] for mechanism in on):
        why = "no mechanism of MindIO TFT is on, so there is no controller that could listen"
        return why, f"add one to job.protection: {', '.join(NEEDS['MindIO'])}"
    return None


def _believed(named: str, scenario: Scenario) -> tuple[str, str] | None:
    """Return why a rank whose connection is reset may count as lost before it can connect again, and what to do."""
    if named != CONTROLLER or scenario.job.timings == "vendor":
        return None
    why = f"with the timings {scenario.job.timings} a rank whose connection has broken counts as lost at once"
    return why, "set job.timings: vendor, by which only heartbeats count, as the vendor's controller counts"


def _not_there(named: str, layout: Layout, hit: Sequence[int], traits: JobTraits) -> tuple[str, str] | None:
    """Return why there is no such port on the nodes of these ranks, and what to do."""
    nodes = sorted({rank // layout.ranks_per_node for rank in hit})
    if named in traits.ports and nodes != [_MASTER]:
        return f"the {named} is on node {_MASTER}, and {ranks(hit)} are hit", f"give the target as node: {_MASTER}"
    if named in traits.own_ports and layout.nodes - 1 in nodes:
        why = f"a rank connects to lower ranks only, so no rank on another node is connected to a port of {ranks(hit)}"
        return why, "hit ranks of a node before the last one"
    return None
