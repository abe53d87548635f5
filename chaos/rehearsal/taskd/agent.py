"""The cluster agent: it starts the ranks, watches them, starts lost ones again, and ends the job."""

from __future__ import annotations

import queue
import sys
import time
from typing import Any, Callable

from chaos.base.growth import FEW
from chaos.base.rank_sets import rank_set
from chaos.rehearsal import finished_ranks
from chaos.rehearsal.taskd.dialogue import Dialogue
from chaos.rehearsal.taskd.settings import Settings
from chaos.rehearsal.taskd.workers import Worker, WorkerError, Workers

FAILED = 1

_REPORT_SECONDS = 5.0
"""How long the agent waits for the report of a success; after ranks have trained to the end the vendor's makes none."""


class ClusterAgent:
    """Controls one job in msrun's place."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers = Workers(settings.logs)
        self._dialogue: Dialogue | None = None
        self._restarts = 0
        self._dead_since: float | None = None
        self._over_since: float | None = None
        self._trained_since: float | None = None

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """Register one of msrun's functions."""
        self._workers.register(name, function)

    def run(self) -> int:
        """Control the job to its end. Returns the launcher's exit code."""
        functions = self._workers.missing_functions()
        if functions:
            say(f"the launcher did not hand over {', '.join(functions)}")
            return FAILED
        try:
            self._start()
            while (code := self._step()) is None:
                self._await_order()
        except WorkerError as error:
            say(str(error))
            self._workers.end_all()
            return FAILED
        return code

    def _start(self) -> None:
        self._dialogue = self._talk()
        say(f"start all {self._settings.ranks} ranks")
        self._workers.start_all()
        self._dead_since = self._over_since = self._trained_since = None

    def _talk(self) -> Dialogue | None:
        if self._settings.controller is None:
            return None
        finished_ranks.forget()
        dialogue = Dialogue(self._settings, say)
        dialogue.start()
        return dialogue

    def _await_order(self) -> None:
        """Wait until the next look; an order to start ranks again is followed at once."""
        if self._dialogue is None:
            time.sleep(self._settings.timings.monitor)
            return
        try:
            ranks = self._dialogue.orders.get(timeout=self._settings.timings.monitor)
        except queue.Empty:
            return
        say(f"start {rank_set(ranks)} again")
        self._workers.start(ranks)
        self._dead_since = None

    def _step(self) -> int | None:
        """Look at all ranks once. Returns the exit code when the job is over."""
        if (
            self._dialogue is not None
            and finished_ranks.count_noted(finished_ranks.TRAINED) == self._settings.ranks
            and self._settled()
        ):
            self._dialogue.end()
        workers = self._workers.look()
        dead = [worker for worker in workers if worker.dead]
        if all(worker.status == 0 for worker in workers):
            if not self._settled():
                return None
            say("all ranks have finished")
            return 0
        if not dead:
            self._dead_since = None
            return None
        if self._dead_since is None:
            self._dead_since = time.monotonic()
            say(f"{_listed(dead)} ended")
        alive = [worker.rank for worker in workers if worker.status is None]
        if self._dialogue is not None and alive and self._may_still_act(alive):
            return None
        return self._lose(dead)

    def _settled(self) -> bool:
        """Return whether the controller has reported the end of its last strategy; it does so with a delay."""
        if self._dialogue is None or not self._dialogue.heard:
            return True
        if self._trained_since is None:
            self._trained_since = time.monotonic()
        return time.monotonic() - self._trained_since > min(_REPORT_SECONDS, self._settings.timings.answer)

    def _may_still_act(self, alive: list[int]) -> bool:
        """Return whether the controller may still find a way: it acts, or there is time left for it to notice.

        It acts no more once the job is to end and the only living ranks cannot hear it, as a stopped process. They are
        given the exit time of a rank that can hear it.
        """
        assert self._dialogue is not None and self._dead_since is not None
        timings, over = self._settings.timings, self._dialogue.gives_up(alive)
        now = time.monotonic()
        if not over:
            self._over_since = None
            return self._dialogue.heard or now - self._dead_since < timings.answer
        if self._over_since is None:  # since the first death a recovery may have been tried for minutes
            self._over_since = now
        return now - self._over_since < timings.leave

    def _lose(self, dead: list[Worker]) -> int | None:
        """Start all ranks again, or end the job: ranks are lost and nothing else recovers them."""
        if not self._settings.reschedules:
            say(f"{_listed(dead)} lost and no mechanism is left: end the job")
        elif self._restarts >= self._settings.restart_limit:
            say(f"restart limit {self._settings.restart_limit} reached; {_listed(dead)} lost: end the job")
        else:
            self._restarts += 1
            say(f"restart {self._restarts} of {self._settings.restart_limit}: kill all ranks")
            self._workers.end_all()
            self._start()
            return None
        self._workers.end_all()
        return FAILED


def say(text: str) -> None:
    """Print a line in the launcher's log."""
    sys.stdout.write(f"taskd: {text}\n")
    sys.stdout.flush()


def _listed(workers: list[Worker]) -> str:
    """Return each with its process; of very many only their ranks."""
    if len(workers) > FEW:
        return rank_set(worker.rank for worker in workers)
    return ", ".join(f"rank {worker.rank} (process {worker.pid})" for worker in workers)
