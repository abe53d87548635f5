"""Part of check ``recovery``: the finder of a broken link, the watchdog or the timeout of the collective.

A line of the rank's log names the finder, in the form of its program. The other witness is the time from the rank's own
record of the broken link to the end of its process: no timeout lets a process end before it is over.
"""

from __future__ import annotations

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, ranks_text
from chaos.evidence.statement_data import about
from chaos.faults.device_errors.proof_link import ACTION
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan

WATCHDOG = "watchdog.error"
TIMEOUT = "device.notify_timeout"

_NAMES = {WATCHDOG: "HcclWatchdogThread catch an error", TIMEOUT: "EI0002"}
"""The wording of the lines of these kinds."""

_MOST_APART = 0.95
"""Share of the timeout that must have passed before it can have run out: each side measures with its own clock."""


def judge_found_link(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge every rank whose link a fault breaks."""
    hit = sorted({rank for fault in plan.faults if effect_of(fault.kind).names_finder for rank in fault.ranks})
    if not hit:
        return
    options = plan.fault_tolerance.recovery_options
    expected_finder = WATCHDOG if options.watchdog else TIMEOUT
    finder = "watchdog" if options.watchdog else "timeout of the collective"
    expected = f"the broken link is found by the {finder}"
    times: list[str] = []
    for rank in hit:
        lines = {event.kind: event.source for event in artifacts.worker_events(TRAIN, rank) if event.kind in _NAMES}
        if not lines:
            collector.unknown(expected, f"the logs of rank {rank} do not say how it was found", data=about(rank))
        elif set(lines) != {expected_finder}:
            logged_finders = ", ".join(sorted(_NAMES[kind] for kind in lines))
            collector.fail(expected, f"the logs of rank {rank} say {logged_finders}", *lines.values(), data=about(rank))
        elif (taken := _until_end(history, rank)) is not None and options.exec_timeout is not None:
            times.append(f"rank {rank} ended {taken[0]:.3f} s after its link broke")
            _judge_time(options.exec_timeout, taken, expected_finder, lines[expected_finder], expected, collector)
    by_log = len(times) < len(hit)
    where = "" if options.exec_timeout is None else f" of {options.exec_timeout:g} s"
    observation = f"it is, on {ranks_text(hit)}" + (f": {times[0]}, with a timeout{where}" if times else "")
    collector.settle(expected, observation, by_log=by_log)


def _judge_time(
    timeout: float,
    taken: tuple[float, Event, Event],
    expected_finder: str,
    line: str,
    expected: str,
    collector: Collector,
) -> None:
    """Judge that the time from the break to the end of the process agrees with the log's line."""
    seconds, broken, end = taken
    where = (line, broken.source, end.source)
    observation = f"rank {broken.rank} ended {seconds:.3f} s after its link broke"
    if expected_finder == TIMEOUT and seconds < timeout * _MOST_APART:
        collector.fail(
            expected,
            f"its log says so, and {observation}, before the {timeout:g} s of the timeout were over",
            *where,
            data=about(broken.rank, quantity="duration", expected=timeout, seen=seconds, unit="s"),
        )
    elif expected_finder == WATCHDOG and seconds >= timeout:
        late = f"its log says so, and {observation}, when the {timeout:g} s of the timeout were over"
        collector.unknown(
            expected,
            f"{late}: either may have ended the wait",
            *where,
            data=about(broken.rank, quantity="duration", expected=timeout, seen=seconds, unit="s"),
        )


def _until_end(history: History, rank: int) -> tuple[float, Event, Event] | None:
    """Return the seconds from the break of the rank's link to its process's end, with both records; None without."""
    broken = [
        event for event in history.select("fault.device", attempt=TRAIN, rank=rank) if event.data["action"] == ACTION
    ]
    if not broken:
        return None
    ends = history.select("rank.exit", attempt=TRAIN, rank=rank, pid=broken[0].pid)
    ends += [
        event
        for event in history.select("child.exit", attempt=TRAIN)
        if (event.data.get("child_rank"), event.data.get("child_pid")) == (rank, broken[0].pid)
    ]
    if not ends:
        return None
    end = min(ends, key=lambda event: event.mono)
    return (end.mono - broken[0].mono) / 1e9, broken[0], end
