"""Questions that several checks ask about a history. Answers are facts; nothing here judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

from chaos.base.rank_sets import rank_set
from chaos.history.event import Event
from chaos.history.reader import History

TRAIN = "train"
RESUME = "resume"

TEARDOWN = "stop"
"""The wait between SIGTERM and SIGKILL. Ranks under the SDK ignore SIGTERM, so a timeout here means nothing."""

# Linux numbers, not this machine's: a run is judged anywhere.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    15: "SIGTERM",
    18: "SIGCONT",
    19: "SIGSTOP",
}
_NUMBERS = {name: number for number, name in _SIGNALS.items()}


def by_rank(history: History, event: str, attempt: str) -> dict[int, list[Event]]:
    """Return the events of one name in one attempt, for each rank in the order in which it wrote them."""
    grouped: dict[int, list[Event]] = defaultdict(list)
    for fact in history.select(event, attempt=attempt):
        if fact.rank is not None:
            grouped[fact.rank].append(fact)
    return dict(sorted(grouped.items()))


def step_of(event: Event) -> int:
    """Return the event's step. Raises ValueError, naming the line, when it has none."""
    step = event.data.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        raise ValueError(f"{event.source}: {event.event} without a step")
    return step


def node_of(event: Event) -> int:
    """Return the number of the node on which the process of an event is; 0 where there are no several nodes."""
    node = event.data.get("node")
    return node if isinstance(node, int) and not isinstance(node, bool) else 0


def steps(history: History, event: str, attempt: str) -> dict[int, list[int]]:
    """Return the steps of ``step.begin`` or ``step.end``, by rank, in the order in which they were written."""
    return {rank: [step_of(fact) for fact in events] for rank, events in by_rank(history, event, attempt).items()}


def last_trained(history: History, rank: int) -> Event | None:
    """Return the last step that the rank ended in the faulted launch."""
    ends = by_rank(history, "step.end", TRAIN).get(rank)
    return ends[-1] if ends else None


def digests(history: History, attempt: str) -> dict[int, dict[int, Event]]:
    """Return digest events by rank and step. A step that was trained again counts with its last training."""
    return {
        rank: {step_of(event): event for event in events}
        for rank, events in by_rank(history, "digest", attempt).items()
    }


def stopped_by_harness(history: History, last: Event) -> list[Event]:
    """Return the deadline at which the harness ended the launch of a rank's last event; none where it did not.

    What comes to its end there is a consequence of the deadline.
    """
    expired = history.select("deadline.expired", attempt=last.attempt)
    return [event for event in expired if event.data.get("name") != TEARDOWN and event.mono >= last.mono][:1]


def processes(history: History, attempt: str) -> dict[int, list[int]]:
    """Return the ids of the processes that were each rank in an attempt, as harness and agents recorded them."""
    pids: dict[int, list[int]] = defaultdict(list)
    for event in history.select("rank.found", attempt=attempt) + history.select("agent.start", attempt=attempt):
        if event.rank is not None and event.pid is not None and event.pid not in pids[event.rank]:
            pids[event.rank].append(event.pid)
    return dict(sorted(pids.items()))


def is_of_this_run(history: History, recorded: str) -> bool | None:
    """Return whether a path leads through the run's original directory; None where its name is not recorded.

    A path that is not absolute begins in the job's own directory.
    """
    if not recorded.startswith("/"):
        return True
    start = history.first("run.start")
    run = start.data.get("run") if start else None
    return run in PurePosixPath(recorded).parts if isinstance(run, str) and run else None


def signal_number(value: object) -> int | None:
    """Return a signal of the history (9, ``"9"`` or ``"SIGKILL"``) as a number. None if it is none of these."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        name = value.upper()
        if name.isdigit():
            return int(name)
        return _NUMBERS.get(name if name.startswith("SIG") else f"SIG{name}")
    return None


def signal_name(number: int | None) -> str:
    """Return a signal's name: ``SIGKILL`` for 9; ``signal 40`` without a better name; ``no signal`` for None."""
    return "no signal" if number is None else _SIGNALS.get(number, f"signal {number}")


def exit_status(event: Event) -> str:
    """Return an exit status in words."""
    number = signal_number(event.data.get("signal"))
    return f"ended by {signal_name(number)}" if number is not None else f"exit code {event.data.get('code')}"


def error_text(event: Event) -> str:
    """Return an event's error, with the first error of the chain where the last one hides it."""
    text = str(event.data.get("error", "no reason given"))
    first = event.data.get("first")
    return f"{text}, behind which is {first}" if first else text


def ranks_text(ranks: Iterable[int]) -> str:
    """Return ranks in words: ``rank 2``, ``ranks 0-1,3``, ``ranks 0-127 (128 in all)``."""
    return rank_set(ranks)


def places(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the places of these events."""
    return tuple(event.source for event in events if event.source)


def text_list(items: Iterable[object], limit: int = 5) -> str:
    """Return up to ``limit`` items, then the number of further ones."""
    listed = [str(item) for item in items]
    more = f" and {len(listed) - limit} more ({len(listed)} in all)" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more
