"""Proofs of faults of a whole node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from chaos.evidence.doubt import Doubt
from chaos.evidence.fields import Fields, number, some
from chaos.evidence.injection.conditions import Condition, condition
from chaos.evidence.injection.deaths import death
from chaos.evidence.injection.fault_nodes import first_act, nodes_of
from chaos.evidence.injection.on_node import nanoseconds
from chaos.evidence.injection.refusal import refused
from chaos.evidence.injection.unresponsive import silence
from chaos.evidence.proof import Case, Proof, all_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

_PERIOD = 100_000
"""Microseconds in which a container gets its quota of processor time."""
_LEAST_QUOTA = 1000


_SHOWN: Mapping[str, tuple[str, Callable[[Mapping[str, object]], bool]]] = {
    "node-kill": (
        "ended by SIGKILL, and not for want of memory",
        lambda shown: (
            shown.get("status") == "exited" and shown.get("exit_code") == 137 and shown.get("oom_killed") is False
        ),
    ),
    "node-stop": (
        "ended by SIGKILL, not for want of memory, and when",
        lambda shown: (
            shown.get("status") == "exited"
            and shown.get("exit_code") == 137
            and shown.get("oom_killed") is False
            and nanoseconds(shown.get("finished")) is not None
        ),
    ),
    "node-restart": (
        "running again since the launch",
        lambda shown: shown.get("status") == "running" and shown.get("restarted") is True,
    ),
    "node-oom": ("out of memory", lambda shown: all(_some(shown.get(key)) for key in ("oom_events", "oom_kills"))),
    "node-pause": ("paused", lambda shown: shown.get("status") == "paused"),
    "node-disconnect": (
        "running and off the network",
        lambda shown: shown.get("status") == "running" and shown.get("connected") is False,
    ),
}
"""The platform's required record of a node, by kind: its description, and a test of it."""


def is_paused(evidence: Mapping[str, object]) -> bool:
    """Return whether evidence shows a node that is paused."""
    return _shows("node-pause", evidence)


def is_disconnected(evidence: Mapping[str, object]) -> bool:
    """Return whether evidence shows a node that runs off the network."""
    return _shows("node-disconnect", evidence)


def _shows(kind: str, evidence: Mapping[str, object]) -> bool:
    shown = evidence.get("node")
    return isinstance(shown, Mapping) and _SHOWN[kind][1](shown)


def node_doubts(fault: PlannedFault, landing: Event, evidence: Mapping[str, object]) -> Iterator[Doubt]:
    """Yield every reason to doubt a fault of the node that a rank is on. None for faults of another kind."""
    if fault.kind not in _SHOWN:
        return
    words, holds = _SHOWN[fault.kind]
    shown = evidence.get("node")
    if not isinstance(shown, Mapping) or not holds(shown):
        yield f"the node of rank {evidence.get('rank')} is not shown to be {words}", (landing.source,)
    elif fault.kind == "node-oom" and (kills := int(shown["oom_kills"])) < len(fault.ranks):
        ended = f"{kills} process{'es' if kills > 1 else ''} of the node for want of memory"
        yield f"the kernel has ended {ended}, and the fault was to take {len(fault.ranks)} ranks", (landing.source,)


def _some(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _on_node(words: str) -> Proof:
    def doubts(case: Case) -> Iterator[Doubt]:
        yield from node_doubts(case.fault, case.landing, case.evidence)

    return Proof(words, ("node",), all_of(death, doubts, silence))


def _node_quota(parameters: Fields, evidence: Fields) -> str | None:
    quota, cores = number(evidence, "quota"), number(parameters, "cores")
    if quota is None or cores is None or not 0 < quota <= max(_LEAST_QUOTA, cores * _PERIOD):
        return f"its quota is {evidence.get('quota')} us in each {_PERIOD}, and it was to get {cores} cores"
    return some("throttled")(parameters, evidence)


def names_gone(parameters: Fields, evidence: Fields) -> str | None:
    """Return a doubt unless a name that was resolved before is not, and its address is reached."""
    if not evidence.get("before") or not evidence.get("error"):
        return f"{evidence.get('name')} was {evidence.get('before')} before, and then: {evidence.get('error')}"
    if evidence.get("reached") not in ("refused", "connected"):
        return f"address {evidence.get('address')} was not reached either"
    return resolvers_cut(parameters, evidence)


def resolvers_cut(parameters: Fields, evidence: Fields) -> str | None:
    """Return a doubt unless the kernel has a route that keeps the node from a resolver."""
    del parameters
    return None if evidence.get("cut") else f"the resolvers that it is kept from are {evidence.get('cut')}"


def reboot_doubts(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that the node of one rank booted again, by this run's order."""
    rank, boot = case.evidence.get("rank"), case.evidence.get("boot")
    if not isinstance(boot, dict) or not boot.get("before") or boot.get("after") in (None, "", boot["before"]):
        yield f"the node of rank {rank} is not known to have booted again", (case.landing.source,)
    else:
        yield from _in_another_boot(case.history, boot, case.landing, case.injection)
    yield from _not_ordered(case.history, case.fault, case.landing, case.injection)


def _in_another_boot(history: History, boot: dict[str, object], landing: Event, injection: Event) -> Iterator[Doubt]:
    """Yield a doubt where the boots do not agree with the boots that the processes of the job report."""
    starts = history.select("writer.start", writer="agent")
    victim = (injection.attempt, injection.rank, injection.pid)
    rank_starts = [event for event in starts if (event.attempt, event.rank, event.pid) == victim]
    before = boot["before"]
    if not any(event.data.get("boot") == before for event in rank_starts):
        text = f"nothing shows that rank {injection.rank} was in the boot {before}, which is said to have ended"
        yield text, (*(event.source for event in rank_starts), landing.source)
    # Compared with the landing and not the order: a process may begin while its host goes down.
    later = [event for event in starts if event.data.get("boot") == before and landing.surely_before(event)]
    if later:
        process = f"rank {later[0].rank} of attempt {later[0].attempt}"
        text = f"{process} began in the boot {before}, which is said to have ended"
        yield text, (*(event.source for event in later), landing.source)


def _not_ordered(history: History, fault: PlannedFault, landing: Event, injection: Event) -> Iterator[Doubt]:
    """Yield a doubt unless this run ordered the reboot between the act and the landing.

    A host that boots again by itself is no fault of this run. All are the harness's own events. For several ranks of a
    node the reboot is ordered once, at the first of them.
    """
    nodes, first = nodes_of(history, injection), first_act(history, fault, injection)
    orders = [event for event in history.select("host.reboot") if event.data.get("node") in nodes]
    if not any(first.mono <= event.mono <= landing.mono for event in orders):
        text = f"nothing shows that this run ordered the reboot of the node of rank {injection.rank}"
        yield text, (*(event.source for event in orders), landing.source)


KILL = _on_node("the platform's word that the node was killed, and not for want of memory; exit status")
STOP = _on_node("the platform's word that the node has ended, and when, exit status")
RESTART = _on_node("the platform's word that the node was started again, exit status")
OOM = _on_node("the platform's word that the node was out of memory, the kernel's count, exit status")
PAUSE = _on_node("the platform's word that the node is paused")
DISCONNECT = _on_node("the platform's word that the node is off the network")
CPU_QUOTA = condition(
    Condition(_node_quota, taken="another process may have changed the node's limits"),
    "the quota that the node has, and how often the kernel let it wait",
    ("quota", "throttled"),
)
DNS = condition(
    Condition(names_gone, resolvers_cut, ("cut",), "another process may have changed the node's routes"),
    "a look-up on the rank's node that fails, and the address that is still reached",
    ("cut", "before", "error", "reached"),
)
REBOOT = Proof("the order, and another boot of the node", ("boot",), reboot_doubts)
VOLUME_GONE = refused("ENOENT")
