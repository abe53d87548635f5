"""The signature of F-15: MindSpore ends a rank that has trained to its end by SIGSEGV while it leaves the cluster.

MindSpore 2.10.0 closes the connection to the scheduler in the main thread while a thread of its own may still read from
it (docs/reference/findings.md). The signature is strict: whatever lacks a piece of the evidence is any other crash.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from chaos.base.plain_files import open_plain, read_plain
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import TRAIN, signal_number
from chaos.history.event import Event
from chaos.history.reader import History, read_history
from chaos.observe.stacks import MOST_BYTES, crash_of
from chaos.plan import io
from chaos.plan.model import Plan

FINDING = "F-15"
OBSERVATION = (
    "ended by SIGSEGV in a native thread, after it had trained to the end and left MindSpore's cluster: "
    f"known defect {FINDING}"
)

_SIGSEGV = 11  # Linux's number: a run is judged anywhere
_ERROR = "Segmentation fault"
_LAST = ("train.end", "agent.cost")
_ALSO_LAST = "sdk.disconnected"  # a rank that MindIO TFT protects ends its processor before it leaves the cluster
_LEFT = re.compile(rb"meta_server_node\.cc:\d{1,9}\] ProcessUnregister\] Node (\d{1,9}) has unregistered\.")
_TAIL = 1 << 20
"""Bytes at the end of the scheduler's log that are searched."""


def cluster_crash(plan: Plan, history: History, artifacts: Artifacts, end: Event) -> tuple[str, ...]:
    """Return the places of the evidence that the end of a rank bears the signature; none where it does not.

    All of this is required:

    - The kernel reports SIGSEGV, and the launchers have exited with 0.
    - The agent's last record is that of the end of the training, after the last step of the plan, but for the end of
      the SDK's processor.
    - No fault was made in this process, or after that record; the harness has not ended the launch.
    - The stacks of the crash (``chaos.agent.stacks``) name no Python thread as the crashed one, and the main thread was
      executing no Python code.
    - The scheduler has recorded that the rank has left the cluster.
    """
    if signal_number(end.data.get("signal")) != _SIGSEGV or end.data.get("code") is not None:
        return ()
    records = history.select(attempt=end.attempt, rank=end.rank, pid=end.pid, writer="agent")
    if not _has_trained(plan, records) or _is_disturbed(history, end, records[-1]):
        return ()
    stacks, scheduler = (artifacts.run_dir / "logs" / str(end.attempt) / name for name in _files_of(end))
    if not _is_without_python(stacks, records) or not _has_left(scheduler, end.rank):
        return ()
    return (end.source, records[-1].source, artifacts.relative(stacks), artifacts.relative(scheduler))


def crashes_of(run_dir: Path) -> list[int]:
    """Return the ranks of the first launch of a run whose ends bear the signature."""
    try:
        plan = io.loads(read_plain(run_dir / "plan.json"))
    except (OSError, io.PlanFormatError):
        return []
    history, artifacts = read_history(run_dir / "history"), Artifacts(run_dir, None)
    exits = history.select("rank.exit", attempt=TRAIN)
    return [end.rank for end in exits if end.rank is not None and cluster_crash(plan, history, artifacts, end)]


def _files_of(end: Event) -> tuple[str, str]:
    return f"stacks-rank_{end.rank}-{end.pid}.txt", "scheduler.log"


def _has_trained(plan: Plan, records: list[Event]) -> bool:
    steps = [event.data.get("step") for event in records if event.event == "step.end"]
    trained = bool(steps) and steps[-1] == plan.training.last_step
    names = [event.event for event in records]
    if names and names[-1] == _ALSO_LAST:
        names.pop()
    return trained and tuple(names[-2:]) == _LAST


def _is_disturbed(history: History, end: Event, last: Event) -> bool:
    """Return whether anything but the rank itself may have ended it, or the launch has not ended well."""
    faults = history.select("fault.injecting", attempt=end.attempt)
    if any(fault.pid == end.pid or fault.mono >= last.mono for fault in faults) or not last.surely_before(end):
        return True
    if history.select("deadline.expired", attempt=end.attempt):
        return True
    launchers = [
        event
        for event in history.select("launcher.exit", attempt=end.attempt)
        if event.data.get("role") not in ("scheduler", "lighthouse")
    ]
    well = [event for event in launchers if event.data.get("code") == 0 and event.data.get("signal") is None]
    return not launchers or well != launchers


def _is_without_python(path: Path, records: list[Event]) -> bool:
    offers = [event.data.get("stacks") for event in records if event.event == "agent.start"]
    try:
        crash = crash_of(read_plain(path, MOST_BYTES))
    except OSError:
        return False
    if crash is None or crash.error != _ERROR or crash.crashed is not None:
        return False
    return len(offers) == 1 and isinstance(offers[0], dict) and offers[0].get("main") in crash.idle


def _has_left(path: Path, rank: int | None) -> bool:
    try:
        with open_plain(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            left = [int(node) for node in _LEFT.findall(file.read(_TAIL))]
    except OSError:
        return False
    return left.count(rank if rank is not None else -1) == 1
