"""Part of check ``hygiene``: the run has left nothing on its nodes, by the report of each remote helper."""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.facts import places, text_list
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.host_clock import EVENT as CLOCK
from chaos.history.reader import History

ON_NODE, AFTERWARDS = "hygiene.node", "hygiene.nodes"
EXPECTED = "the run has left nothing on its nodes"


def judge_nodes(history: History, collector: Collector) -> None:
    """Judge the reports of the remote helpers and the platform after the run; nothing for a job without nodes."""
    launched = [event for event in history.select(CLOCK) if isinstance(event.data.get("node"), int)]
    looks = history.select(ON_NODE)
    if not launched and not looks:
        return
    asked = {event.data.get("node") for event in looks}
    for number in sorted({int(event.data["node"]) for event in launched} - asked):
        collector.unknown(
            EXPECTED, f"no check was made on node {number}", *places(launched[:1]), data=about(nodes=number)
        )
    for event in looks:
        _judge_node(event, collector)
    _judge_platform(history.select(AFTERWARDS), launched, collector)
    collector.settle(EXPECTED, f"{len(asked)} nodes were asked, and the platform")


def _judge_node(look: Event, collector: Collector) -> None:
    node = look.data.get("node")
    if look.data.get("unasked"):
        collector.unknown(
            EXPECTED, f"node {node} could not be asked: {look.data['unasked']}", look.source, data=about(nodes=node)
        )
        return
    if look.data.get("gone") is True:
        return  # its processes ended with it, and its platform reports its leftovers below
    for key, words in (("orphans", "processes"), ("mounts", "mounts"), ("rules", "rules of the network")):
        left = look.data.get(key, [] if key == "rules" else None)  # not every node has a network that faults act on
        if not isinstance(left, list):
            collector.unknown(
                EXPECTED, f"on node {node} {words} were not looked for", look.source, data=about(nodes=node)
            )
        elif left:
            collector.fail(
                EXPECTED,
                f"{words} left on node {node}: {text_list(map(str, left))}",
                look.source,
                data=about(nodes=node),
            )


def _judge_platform(looks: list[Event], launched: list[Event], collector: Collector) -> None:
    if not looks:
        collector.unknown(EXPECTED, "no check was made after the nodes were removed", *places(launched[:1]))
    for look in looks:
        name, left = look.data.get("platform"), look.data.get("left")
        if look.data.get("unasked"):
            collector.unknown(EXPECTED, f"the platform {name} could not be asked: {look.data['unasked']}", look.source)
        elif not isinstance(left, list):
            collector.unknown(EXPECTED, f"the platform {name} did not report what it still has", look.source)
        elif left:
            collector.fail(EXPECTED, f"the platform {name} still has {text_list(map(str, left))}", look.source)
