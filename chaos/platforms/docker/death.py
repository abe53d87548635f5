"""How a container ended, as the engine reports it: its state, and its events ``oom`` and ``die`` since its start."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.platforms.docker.engine import engine_errors, state_of

if TYPE_CHECKING:
    from docker.models.containers import Container

_KILLED = 128 + 9
"""The exit code that the engine gives a container whose first process was ended by SIGKILL."""


def how_it_ended(container: Container, started: str) -> ExitStatus:
    """Return how the processes in the container ended with it. ``started`` is its start time (RFC 3339).

    When the first process of a PID namespace ends, the kernel ends all others with SIGKILL (pid_namespaces(7)). SIGKILL
    counts as the end of a rank only where the engine reports that the first process was killed, and reports no shortage
    of memory: in a shortage the kernel may have ended the rank by itself, before. Otherwise the end is unknown.
    """
    try:
        with engine_errors(f"container {container.name}"):
            state, events = state_of(container), list(_events(container, started))
    except PlatformError as error:
        return ExitStatus(told_by=f"nobody: {error}")
    died = next((event for event in events if event.get("Action") == "die"), None)
    if died is not None:
        code = str((died.get("Actor") or {}).get("Attributes", {}).get("exitCode"))
    elif state["Status"] in ("exited", "dead"):
        code = str(state["ExitCode"])
    else:
        return ExitStatus(told_by=f"nobody: the engine says that the container is {state['Status']}")
    statement = f"the engine: container {container.short_id} ended with exit code {code}"
    if state["OOMKilled"] or any(event.get("Action") == "oom" for event in events):
        return ExitStatus(told_by=f"{statement}, and was out of memory")
    return ExitStatus(signal=9 if code == str(_KILLED) else None, told_by=statement)


def _events(container: Container, started: str) -> Any:
    """Return the engine's events of the container since its start, up to its first end."""
    assert container.client is not None
    since: Any = seconds_of(started)  # the client's own types know whole seconds only
    events = container.client.events(
        since=since,
        until=int(time.time()) + 1,
        decode=True,
        filters={"container": container.id, "event": ["oom", "die"]},
    )
    for event in events:
        yield event
        if event.get("Action") == "die":
            return


def seconds_of(moment: str) -> str:
    """Return a timestamp of the engine (RFC 3339, nanoseconds) in the form that its API takes."""
    whole, _, fraction = moment.rstrip("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp())
    return f"{seconds}.{fraction.ljust(9, '0')[:9]}"
