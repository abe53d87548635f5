"""Part of check ``injection``: the process that was hit was the rank, by harness and agent."""

from __future__ import annotations

from chaos.checks.injection.fault_case import FaultCase
from chaos.evidence.facts import places
from chaos.evidence.injection.identity import identity_doubt
from chaos.history.event import Event


def judge_identity(case: FaultCase, injection: Event) -> None:
    """Judge that the hit process was the rank, by the harness's identification and by the agent inside it."""
    rank, attempt, pid = injection.rank, injection.attempt, injection.pid
    identified = [event for event in case.history.select("rank.found", attempt=attempt, rank=rank) if event.pid == pid]
    started = [event for event in case.history.select("agent.start", attempt=attempt, rank=rank) if event.pid == pid]
    node = identified[0].data.get("node") if identified else None  # nodes may have PIDs of their own
    launchers = [
        event
        for event in case.history.select("launcher.found", attempt=attempt)
        if event.pid == pid and event.data.get("node") == node
    ]
    if launchers:
        role = launchers[0].data.get("role", "launcher")
        case.unproven(f"process {pid} was the {role} and not rank {rank}", launchers[0].source, injection.source)
    if not identified:
        case.unproven(f"process {pid} was never identified as rank {rank}", injection.source)
    elif (doubt := identity_doubt(identified, injection)) is not None:
        observation = f"process {pid} is not proven to be the one identified as rank {rank}: {doubt}"
        case.unproven(observation, injection.source, *places(identified))
    if not started:
        case.unproven(f"no agent of rank {rank} has recorded from process {pid}", injection.source)
    target = injection.data.get("target_rank")
    if target is not None and target != rank:
        case.unproven(f"the injection was aimed at rank {target}", injection.source)
