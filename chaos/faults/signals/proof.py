"""Proofs that a signal has reached a rank's process, and of its effect there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status, signal_name, signal_number
from chaos.evidence.fields import Fields, number
from chaos.evidence.injection.conditions import Condition, condition
from chaos.evidence.injection.deaths import death
from chaos.evidence.injection.unresponsive import silence
from chaos.evidence.proof import Case, Proof, all_of

SIGKILL, SIGTERM, SIGSTOP = 9, 15, 19


def is_stopped(evidence: Mapping[str, object]) -> bool:
    """Return whether evidence shows a process that SIGSTOP holds."""
    return evidence.get("signal") == SIGSTOP


def _is_stopped(parameters: Fields, evidence: Fields) -> str | None:
    del parameters
    return None if evidence.get("state") == "stopped" else f"its state is {evidence.get('state')}"


def termination_doubts(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that SIGTERM was delivered to one rank.

    A process that SIGTERM ended has an exit status that says so. A process with a handler lives on, and its own record
    goes on; a handler may also end it in its own way.
    """
    history, landing, evidence, injection = case.history, case.landing, case.evidence, case.injection
    rank, pid = injection.rank, injection.pid
    exits = [event for event in history.select("rank.exit", attempt=injection.attempt, rank=rank) if event.pid == pid]
    if evidence.get("caught") is True:
        if evidence.get("pending") is not False:
            yield f"the signal still waited at rank {rank}", (landing.source,)
        events = history.select(attempt=injection.attempt, rank=rank, pid=pid, writer="agent")
        if not exits and not any(injection.surely_before(event) for event in events):
            yield f"rank {rank} neither recorded anything after the signal nor ended", (landing.source,)
        return
    if not exits:
        yield f"rank {rank} has no handler for the signal, and no exit status", (landing.source,)
    for event in exits:
        if signal_number(event.data.get("signal")) != SIGTERM:
            yield (
                f"rank {rank} {exit_status(event)}, not ended by {signal_name(SIGTERM)}",
                (event.source, landing.source),
            )


def launcher_doubts(case: Case) -> Iterator[Doubt]:
    """Yield every reason to doubt that SIGKILL ended the launcher of the rank's node, where the fault takes it too."""
    if case.fault.parameters.get("with") != "launcher":
        return
    rank, shown = case.injection.rank, case.evidence.get("launcher")
    if not isinstance(shown, Mapping) or shown.get("signal") != SIGKILL:
        yield f"the launcher on the node of rank {rank} is not shown to be ended by SIGKILL", (case.landing.source,)
        return
    ends = [
        event
        for event in case.history.select("launcher.exit", attempt=case.injection.attempt)
        if event.pid == shown.get("pid")
    ]
    if not ends:
        yield f"no exit status of launcher {shown.get('pid')} is recorded", (case.landing.source,)
    elif signal_number(ends[0].data.get("signal")) != SIGKILL:
        yield f"launcher {shown.get('pid')} {exit_status(ends[0])}, not ended by SIGKILL", (ends[0].source,)


def duration_doubts(case: Case) -> Iterator[Doubt]:
    """Yield a doubt where a suspension with ``seconds`` has no recorded end, or one before its time."""
    seconds = number(case.fault.parameters, "seconds")
    if seconds is None:
        return
    endings = case.history.select("fault.ending", fault=case.fault.id, attempt=case.landing.attempt)
    if not endings:
        yield f"its end is not recorded; planned was {seconds:g} s", (case.landing.source,)
    elif (lasted := (endings[0].mono - case.landing.mono) / 1e9) < seconds:
        text = f"it was planned for {seconds:g} s, but ended with the launch after {lasted:.3f} s"
        yield text, (case.landing.source, endings[0].source)


KILL = Proof("the kernel's exit status", ("signal",), all_of(death, launcher_doubts))
SUSPEND = Proof(
    "the kernel's word that the process was stopped, and its silence until it was let go",
    ("signal",),
    all_of(silence, duration_doubts),
)
TERMINATE = Proof("the kernel's word that the signal was taken", ("signal",), termination_doubts)
FREEZE = condition(
    Condition(_is_stopped, longest=4.0), "the kernel's word that the process is stopped", ("signal", "state")
)
