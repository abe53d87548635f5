"""Healing: after the harness was killed, end what its runs have left and put back what their faults have changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from chaos.history.clock import SYSTEM_CLOCK, Clock
from chaos.history.ledger import Ledger, LedgerError, UndoStep
from chaos.history.writer import HistoryWriteError, HistoryWriter
from chaos.platforms.find import find_run_processes, runs_alive
from chaos.run.directory import (
    LEDGER_FILE,
    RUN_FILE,
    RUN_NAME,
    RunDirectoryError,
    creation_lock,
    read_run,
    unfinished_files,
)
from chaos.run.ownership import LOCK_NAME, RunIsLive, RunLock, is_live
from chaos.run.undo import UNDO_ACTIONS, CannotUndo, UndoAction, UndoContext, end_job, undo_open_steps
from chaos.run.wait import DeadlineExpired

Outcome = Literal["nothing", "healed", "failed", "live"]


@dataclass
class HealReport:
    """What was found and done in one run. ``failed`` says what could not be put back, and why."""

    run: str
    found: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    live: bool = False

    @property
    def outcome(self) -> Outcome:
        """ "live": its harness still runs and it was not touched. "nothing": nothing was left of it."""
        if self.live:
            return "live"
        if self.failed:
            return "failed"
        return "healed" if self.done else "nothing"

    @property
    def ok(self) -> bool:
        """Whether nothing is left to be put back. A live run was not healed, so it is not ok."""
        return self.outcome in ("nothing", "healed")


def heal_run(
    run_dir: Path, *, actions: Mapping[str, UndoAction] = UNDO_ACTIONS, clock: Clock = SYSTEM_CLOCK
) -> HealReport:
    """Heal one run: undo its open steps, the latest first, then end whatever process still carries its identity.

    A run whose harness lives is reported and not touched. It can be called again at any time, also after it was
    killed itself: what is done is not done twice, and what is left is found again. Events go to
    ``history/heal-<pid>.jsonl``, only if there was something to do.
    """
    run_dir = run_dir.resolve()
    report = HealReport(run_dir.name)
    if not run_dir.is_dir():
        report.failed.append(f"{run_dir}: there is no such run")
        return report
    try:
        with creation_lock(run_dir.parent, clock=clock):
            lock = RunLock.acquire(run_dir, clock=clock)
    except RunIsLive as error:
        report.live = True
        report.found.append(str(error))
        return report
    except (DeadlineExpired, OSError) as error:
        report.failed.append(f"{run_dir}: cannot be locked: {error}")
        return report
    with lock:
        _heal_owned(run_dir, report, actions, clock)
    return report


def heal_all(
    reports: Path, *, actions: Mapping[str, UndoAction] = UNDO_ACTIONS, clock: Clock = SYSTEM_CLOCK
) -> list[HealReport]:
    """Heal every run in ``reports`` that has something left, and report those and the live ones, in order of name."""
    if not reports.is_dir():
        return []
    made = _tidy_reports(reports, clock)
    carried = runs_alive()
    healed = []
    for run_dir in made:
        if is_live(run_dir) or _has_left_something(run_dir, carried):
            healed.append(heal_run(run_dir, actions=actions, clock=clock))
    return healed


def _heal_owned(run_dir: Path, report: HealReport, actions: Mapping[str, UndoAction], clock: Clock) -> None:
    ledger = Ledger(run_dir / LEDGER_FILE)
    content = ledger.read()
    try:
        token = read_run(run_dir)["token"]
    except RunDirectoryError as error:
        # Without open steps there is nothing that could be healed: a job's step is recorded before the job is started.
        if content.open or content.problems:
            report.found += [f"open undo step {step.id}: {step.note or step.action}" for step in content.open]
            report.failed.append(f"open undo steps cannot be undone without the run's identity: {error}")
        return
    report.failed += [
        f"the undo ledger is damaged, look for what it may have held: {text}" for text in content.problems
    ]
    processes = find_run_processes(token)
    report.found += [f"open undo step {step.id}: {step.note or step.action}" for step in content.open]
    report.found += [f"{process.identity}: {' '.join(process.cmdline)}" for process in processes]
    leftovers = unfinished_files(run_dir)
    report.found += [f"unfinished file {path.name}" for path in leftovers]
    if not report.found:
        return
    try:
        (run_dir / "history").mkdir(exist_ok=True)
        path = run_dir / "history" / f"heal-{os.getpid()}.jsonl"
        with HistoryWriter(path, writer="heal", run=run_dir.name, clock=clock, resume=True) as history:
            _undo(ledger, UndoContext(token, clock), actions, report, history)
            for path in leftovers:
                path.unlink(missing_ok=True)
                report.done.append(f"removed unfinished file {path.name}")
            history.record("heal.end", found=report.found, done=report.done, failed=report.failed)
    except (HistoryWriteError, LedgerError, OSError) as error:
        report.failed.append(f"healing was cut off: {error}")


def _undo(
    ledger: Ledger, context: UndoContext, actions: Mapping[str, UndoAction], report: HealReport, history: HistoryWriter
) -> None:
    for undone in undo_open_steps(ledger, actions, context):
        text = f"{undone.step.id}: {undone.how}"
        if undone.ok:
            report.done.append(text)
            if undone.step.fault is not None:
                history.record("fault.healed", fault=undone.step.fault, how=undone.how)
        else:
            report.failed.append(text)
    # Whatever the ledger says, no process of the run may be left.
    if find_run_processes(context.token):
        try:
            report.done.append(end_job(UndoStep("processes", None, "end-job", {"run": context.token}), context))
        except CannotUndo as error:
            report.failed.append(str(error))


def _tidy_reports(reports: Path, clock: Clock) -> list[Path]:
    """The run directories, after removing what was cut off while it was being made."""
    with creation_lock(reports, clock=clock):
        for path in unfinished_files(reports):
            path.unlink(missing_ok=True)
        directories = [path for path in sorted(reports.iterdir()) if path.is_dir() and not path.is_symlink()]
        made = []
        for directory in directories:
            if (directory / RUN_FILE).exists():
                made.append(directory)
            elif not is_live(directory):
                _remove_stillborn(directory)
    return made


def _remove_stillborn(directory: Path) -> None:
    """Remove a directory whose making was cut off. One that holds anything else is none of ours."""
    leftovers = unfinished_files(directory)
    names = {path.name for path in directory.iterdir()}
    if RUN_NAME.fullmatch(directory.name) and names <= {LOCK_NAME, *(path.name for path in leftovers)}:
        for path in [*leftovers, directory / LOCK_NAME]:
            path.unlink(missing_ok=True)
        directory.rmdir()


def _has_left_something(run_dir: Path, carried: set[str]) -> bool:
    content = Ledger(run_dir / LEDGER_FILE).read()
    if content.open or content.problems or unfinished_files(run_dir):
        return True
    try:
        return read_run(run_dir)["token"] in carried
    except RunDirectoryError:
        return False
