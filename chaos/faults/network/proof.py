"""Proofs of faults of the network between nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from chaos.evidence.doubt import Doubt
from chaos.evidence.fields import Fields, number, some
from chaos.evidence.injection.conditions import Condition, condition
from chaos.evidence.proof import Case, Proof

_DEVIATIONS = 5.0
"""The largest deviation of a share, in standard deviations of chance."""


def network_rate(parameters: Fields, evidence: Fields) -> str | None:
    """Return the doubt about the rate, or about the bytes that were sent at it; None without one."""
    if evidence.get("kbit") != parameters.get("kbit"):
        return f"the rate is {evidence.get('kbit')} kbit, not {parameters.get('kbit')}"
    return some("bytes")(parameters, evidence)


def delayed(parameters: Fields, evidence: Fields) -> str | None:
    """Return the doubt about the round trip, which has to show the delay, or the packets; None without one."""
    round_trip, delay = number(evidence, "round_trip"), number(parameters, "milliseconds")
    jitter = number({"jitter": 0, **parameters}, "jitter")
    if round_trip is None or delay is None or jitter is None or round_trip < max(0.0, delay - jitter):
        return f"a round trip took {evidence.get('round_trip')} ms, with a delay of {parameters.get('milliseconds')} ms"
    return some("passed")(parameters, evidence)


def partly_lost(parameters: Fields, evidence: Fields) -> str | None:
    """Return the doubt about the number of lost echoes, within chance; None without one."""
    sent, lost, percent = number(evidence, "sent") or 0, number(evidence, "lost") or 0, number(parameters, "percent")
    if not 0 < lost <= sent or percent is None:
        return f"of {evidence.get('sent')} echoes {evidence.get('lost')} were lost"
    share = percent / 100
    if abs(lost / sent - share) > _DEVIATIONS * math.sqrt(share * (1 - share) / sent) + 1 / sent:
        return f"of {sent:g} echoes {lost:g} were lost, which is not {percent:g} %"
    return some("passed")(parameters, evidence)


def all_directions_lost(parameters: Fields, evidence: Fields) -> str | None:
    """Return a doubt unless every packet on every way is lost."""
    lost, directions = evidence.get("lost"), number(evidence, "ways")
    ways = 2 if parameters.get("direction", "both") == "both" else 1
    pairs = _pairs(lost)
    if pairs is None or not directions or len(pairs) < directions or directions % ways:
        return f"packets are lost on ways {lost}, of {evidence.get('ways')}"
    if ways == 2 and any((there, here) not in pairs for here, there in pairs):
        return f"packets are lost on ways {lost}, which are not both ways between the same nodes"
    return None


def _pairs(directions: object) -> set[tuple[int, int]] | None:
    """Return the ways as pairs of the packets' source and target nodes; None where one is wrong, or there twice."""
    if not isinstance(directions, list) or not all(_is_direction(direction) for direction in directions):
        return None
    pairs = {(direction[0], direction[1]) for direction in directions}
    return pairs if len(pairs) == len(directions) else None


def _is_direction(direction: object) -> bool:
    if not isinstance(direction, list) or len(direction) != 2:
        return False
    here, there = direction
    return all(type(node) is int and node >= 0 for node in direction) and here != there


def all_lost(parameters: Fields, evidence: Fields) -> str | None:
    """Return the same doubt for connections of the job; no echo may come back."""
    if (doubt := all_directions_lost(parameters, evidence)) is not None:
        return doubt
    echoes = evidence.get("echoes")
    if not isinstance(echoes, Mapping) or (number(echoes, "sent") or 0) <= 0 or number(echoes, "answered") != 0:
        return f"of echoes sent through it came back {echoes}"
    return some("connections")(parameters, evidence)


def port_lost(parameters: Fields, evidence: Fields) -> str | None:
    """Return a doubt unless every packet to the port is lost, or every one both ways."""
    port, planned = evidence.get("port"), parameters.get("port")
    if not isinstance(port, int) or isinstance(port, bool) or (isinstance(planned, int) and port != planned):
        return f"the blocked port is {port}, the planned port is {planned}"
    return all_directions_lost({"direction": "in", **parameters}, evidence)


def port_alone_lost(parameters: Fields, evidence: Fields) -> str | None:
    """Return the same doubt for connections of the job; another port has to answer, and this one must not."""
    if (doubt := port_lost(parameters, evidence)) is not None:
        return doubt
    passing, lost = evidence.get("passing"), evidence.get("lost")
    if not isinstance(passing, list) or len(passing) != evidence.get("ways"):
        return f"other packets pass on ways {passing}, of {evidence.get('ways')}"
    if _pairs(passing) != _pairs(lost):
        return f"other packets pass on ways {passing}, and those to the port are lost on {lost}"
    for where, all_answered in (("attempts", False), ("attempts elsewhere", True)):
        made = evidence.get(where)
        numbers = [number(made, key) for key in ("made", "answered")] if isinstance(made, Mapping) else [None, None]
        if (numbers[0] or 0) <= 0 or numbers[1] != (numbers[0] if all_answered else 0):
            return f"what became of {where} to connect is {made}"
    return some("connections")(parameters, evidence)


def reset_doubts(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that the connections of one rank's node were reset."""
    fault, landing, evidence = case.fault, case.landing, case.evidence
    rank, listed, planned = evidence.get("rank"), evidence.get("reset"), fault.parameters.get("port")
    port = evidence.get("port")
    if not isinstance(port, int) or (isinstance(planned, int) and port != planned):
        yield f"the evidence for rank {rank} is of port {port}, the planned port is {planned}", (landing.source,)
    resets = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if not resets:
        yield f"the connections of the node of rank {rank} that were reset are not in the evidence", (landing.source,)
    for reset in resets:
        if reset.get("confirmed") is not True or not reset.get("cookie") or not reset.get("other cookie"):
            yield f"nothing shows that both ends of a connection of rank {rank}'s node were reset", (landing.source,)
        elif port not in (reset.get("source_port"), reset.get("target_port")):
            yield f"a connection of rank {rank}'s node was reset that has no end at port {port}", (landing.source,)
    if evidence.get("left") != 0:
        yield f"of the connections of rank {rank}'s node {evidence.get('left')} were left", (landing.source,)


_TAKEN = "the relay or the rule between the nodes may have been taken away"

DELAY = condition(
    Condition(delayed, some("passed"), ("by",), _TAKEN),
    "how long echoes from the rank's node took",
    ("by", "passed", "round_trip"),
)
LOSS = condition(
    Condition(partly_lost, some("passed"), ("by",), _TAKEN),
    "how many echoes from the rank's node were lost",
    ("by", "passed", "sent", "lost"),
)
RATE = condition(
    Condition(network_rate, None, ("kbit",), _TAKEN),
    "the rate limit of the kernel, and the bytes sent under it",
    ("kbit", "bytes"),
)
PARTITION = condition(
    Condition(all_lost, all_directions_lost, longest=3.0),
    "what the kernel does with packets between the nodes",
    ("lost", "ways", "connections", "echoes"),
)
PORT = condition(
    Condition(port_alone_lost, port_lost, ("port",), longest=3.0),
    "what the kernel does with packets to the port, and that it does not answer",
    ("port", "lost", "ways", "passing", "connections", "attempts", "attempts elsewhere"),
)
RESET = Proof(
    "the kernel's word on each connection, and that neither end has it any more",
    ("port", "reset", "left"),
    reset_doubts,
)
