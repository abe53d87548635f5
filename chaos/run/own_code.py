"""The user's own code in the course of one run: hooks before and after it, its checks, and notifications."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chaos.base.clock import Clock
from chaos.history.writer import HistoryWriter
from chaos.own.checks import run_checks
from chaos.own.hooks import Record, run_hooks
from chaos.own.program import OwnPlace
from chaos.run.interrupts import uninterrupted
from chaos.run.options import RunOptions
from chaos.run.prepare.prepared import Prepared
from chaos.run.progress import Progress, Watched
from chaos.store.directory import RunDirectory

if TYPE_CHECKING:
    from chaos.report.result import Result

NOTIFIED = "notify"
"""The writer of the commands that a verdict starts: the harness's own record is complete by then."""


class OwnCode:
    """The own code of one run. Whatever is not allowed does not run, and its record says so."""

    def __init__(
        self, prepared: Prepared, options: RunOptions, owned: RunDirectory, clock: Clock, progress: Progress
    ) -> None:
        self._scenario, self._owned, self._clock = prepared.scenario, owned, clock
        self._allowed, self._progress = options.allowed, progress
        self._directory = prepared.loaded.path.parent.absolute()
        environment = {
            "CHAOS_RUN_DIR": str(owned.path),
            "CHAOS_SCENARIO": prepared.scenario.name,
            "CHAOS_CELL": prepared.cell.name,
        }
        self._place = OwnPlace(owned.token, owned.ledger, clock, self._directory, environment)

    def before(self, history: HistoryWriter) -> None:
        """Run the commands before the job. Raises HookFailed."""
        hooks = self._scenario.hooks.before
        run_hooks("before", hooks, self._place, self._allowed, self._record(history), self._progress.note)

    def after(self, history: HistoryWriter, *, checked: bool) -> None:
        """Run the checks, unless the run was interrupted, and then the commands after the job."""
        record = self._record(history)
        with uninterrupted():
            if checked:
                names = self._scenario.checks
                run_checks(names, self._owned.path, self._directory, self._place, self._allowed, record)
            hooks = self._scenario.hooks.after
            run_hooks("after", hooks, self._place, self._allowed, record, self._progress.note)

    def notify(self, result: Result) -> None:
        """Run the commands for the verdict, and record them in a file of their own."""
        hooks = self._scenario.hooks.notify
        if not hooks:
            return
        headline = "" if result.headline is None else result.headline.text
        verdict = {"CHAOS_VERDICT": result.verdict, "CHAOS_HEADLINE": headline.replace("\0", "")}
        place = replace(self._place, environment={**self._place.environment, **verdict})
        path = self._owned.path / "history" / f"{NOTIFIED}.jsonl"
        with uninterrupted(), HistoryWriter(path, writer=NOTIFIED, run=self._owned.token, clock=self._clock) as history:
            run_hooks("notify", hooks, place, self._allowed, self._record(history), self._progress.note)

    def _record(self, history: HistoryWriter) -> Record:
        """Return what records an event and shows it: a watcher sees what a run waits for."""
        return Watched(history, self._progress).record
