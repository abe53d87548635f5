"""``chaos soak --kill``: kill the harness at random moments, heal, and look for leftovers."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes
from chaos.cli.options import echo_json
from chaos.cli.soak.cells import SoakCells, name_of
from chaos.cli.soak.kill_report import heal_and_remove, print_tallies
from chaos.cli.soak.view import SoakView, open_soak_view
from chaos.cli.with_parent import command_of
from chaos.soak.harness_progress import acts_of_faults, kinds_of_undo, open_undo, reached, recorded_lines
from chaos.soak.kill_soak import CompleteRun, Kill, KillRecord, KillTally, Moment, draw, tally
from chaos.soak.leftovers import leftovers
from chaos.soak.soak import Cell as CellName

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario

_LOOK_SECONDS = 0.01


def stem_of(name: CellName) -> str:
    """Return the name of a cell as a part of the name of a directory, in which a number keeps its sign."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", "-".join(filter(None, name)).replace("=-", "=minus "))


def _has_come(moment: Moment, place: Path) -> bool:
    """Return whether ``place`` shows the event from which the moment is counted."""
    if moment.undo is not None:
        return moment.undo in open_undo(place)
    return moment.line is None or recorded_lines(place) >= moment.line


class _Interrupted(Exception):
    """The soak is being ended."""


def soak_kills(
    pairs: list[tuple[LoadedScenario, Cell]],
    reports: Path,
    *,
    times: int,
    jobs: int,
    settings: dict[str, str],
    sdk: str,
    seed: int | None,
    as_json: bool,
    allowances: Sequence[str] = (),
) -> int:
    """Make the remaining kills, print their results, and return the exit code."""
    soak = KillSoak(pairs, reports, times, jobs, settings, sdk, seed, allowances)
    interrupted = soak.run()
    tallies = soak.tallies()
    if as_json:
        bad = [{"number": kill.number, "moment": kill.moment, "left": kill.left} for kill in soak.kills() if kill.left]
        cells = [cell_tally.to_json() for cell_tally in tallies]
        echo_json({"times": times, "interrupted": interrupted, "cells": cells, "left": bad})
    else:
        print_tallies(tallies, times, reports)
    if interrupted:
        return codes.INTERRUPTED
    return codes.HARNESS if any(cell_tally.left for cell_tally in tallies) else codes.PASS


class KillSoak:
    """The remaining kills. Each run has a reports directory of its own, so its leftovers are its alone."""

    def __init__(
        self,
        pairs: list[tuple[LoadedScenario, Cell]],
        reports: Path,
        times: int,
        jobs: int,
        settings: dict[str, str],
        sdk: str,
        seed: int | None,
        allowances: Sequence[str] = (),
    ) -> None:
        groups = {name_of((cell,)): (loaded, (cell,)) for loaded, cell in pairs}
        self._cells = SoakCells(groups, settings, sdk, jobs, allowances)
        self._places = reports / "kills"
        self._times = times
        self._jobs = jobs
        self._seed = random.SystemRandom().randrange(10**6) if seed is None else seed
        self._record = KillRecord(reports / "kills.jsonl")
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        self._measuring = threading.Lock()
        self._counted = Counter(kill.of for kill in self.kills() if kill.killed)
        self._numbers = Counter(kill.of for kill in self._record.kills())  # of any code, or places would be used twice

    def kills(self) -> list[Kill]:
        """Return the kills of the present code, also kills that came too late."""
        return [kill for kill in self._record.kills() if self._cells.counts(kill.of, kill.code)]

    def tallies(self) -> list[KillTally]:
        """Return the result of each cell."""
        kills = self.kills()
        undo = {run.of: run.undo for run in self._record.complete_runs() if self._cells.counts(run.of, run.code)}
        return [tally(name, kills, undo.get(name, ())) for name in self._cells]

    def run(self) -> bool:
        """Make the remaining kills; return True when Ctrl-C has ended them."""
        click.echo(f"seed {self._seed}; {sum(self._counted.values())} kills are recorded", err=True)
        self._tidy()
        left = sum(max(0, self._times - self._counted[name]) for name in self._cells)
        with (
            open_soak_view(lambda: self._places.glob("*"), left, self._jobs, noun="kills") as view,
            ThreadPoolExecutor(self._jobs) as pool,
        ):
            try:
                for future in [pool.submit(self._work, view) for _ in range(self._jobs)]:
                    future.result()
            except KeyboardInterrupt:
                return True
            finally:
                self._stop()
        return False

    # The work of one thread.

    def _work(self, view: SoakView) -> None:
        try:
            while (name := self._next()) is not None:
                complete_run = self._whole(name)
                kill = self._kill_and_heal(name, complete_run)
                outcome = "left something" if kill.left else "clean" if kill.killed else "late"
                with self._lock:
                    view.take(outcome, kill.seconds, counts=kill.killed)
                mark = "LEFT" if kill.left else outcome
                view.say(f"{mark:<5}  {kill.number:4}  {name[0]}: {kill.moment}")
                if kill.killed:
                    continue
                with self._lock:
                    self._counted[name] -= 1  # it came too late, so another kill has to be made
        except _Interrupted:
            return
        except BaseException:
            self._stop()  # the others need not go on
            raise

    def _next(self) -> CellName | None:
        """Return the cell with the fewest kills, counted as if this one were made; None when all have enough."""
        with self._lock:
            name = min(self._cells, key=lambda cell: self._counted[cell])
            if self._counted[name] >= self._times:
                return None
            self._counted[name] += 1
            return name

    def _whole(self, name: CellName) -> CompleteRun:
        """Return the duration of a run without a kill, measured once."""
        with self._measuring:
            complete_runs = self._record.complete_runs()
            known = [run for run in complete_runs if run.of == name and self._cells.counts(name, run.code)]
            if known:
                return known[0]
            place = self._make_place(name, "whole")
            started = time.monotonic()
            process = self._start(place, self._run_of(name), subprocess.PIPE)
            _, errors = process.communicate()
            self._end(process)
            if process.returncode not in (codes.PASS, codes.FAIL, codes.UNKNOWN):
                text = errors.decode("utf-8", "replace")
                raise click.ClickException(
                    f"a run of {name[0]} that nobody kills ends with {process.returncode}: {text}"
                )
            seconds = round(time.monotonic() - started, 3)
            acts, undo = acts_of_faults(place), kinds_of_undo(place)
            lines, lasted = recorded_lines(place), list(acts.values())
            complete_run = CompleteRun(*name, self._cells.codes[name], seconds, lines, list(acts), undo, lasted)
            self._record.append(complete_run)
            shutil.rmtree(place)
            return complete_run

    def _kill_and_heal(self, name: CellName, complete_run: CompleteRun) -> Kill:
        """Kill one run, heal it, record its leftovers, and return the record."""
        with self._lock:
            self._numbers[name] += 1
            number = self._numbers[name]
        hit = tally(name, self.kills()).hit
        moment = draw(self._seed, name, number, complete_run, hit)
        place = self._make_place(name, f"{number:04d}")
        started = time.monotonic()
        try:
            harness = self._start(place, self._run_of(name))
            killed = self._kill(harness, moment, place)
            last, undo = reached(place), open_undo(place)
            pids = [harness.pid]
            if moment.heal is not None:
                healer = self._start(place, ["heal"])
                self._kill(healer, Moment(moment.heal, None, None), place)
                pids.append(healer.pid)
            done, failed = self._heal(place, pids)
        except _Interrupted:
            heal_and_remove(place)
            raise
        self._cells.refuse_change(name, "this kill")
        left = [*failed, *leftovers(place, *pids)]
        seconds = round(time.monotonic() - started, 1)
        head = (*name, self._cells.codes[name], number, self._seed, str(moment))
        kill = Kill(*head, killed, last, seconds, done, left, undo)
        self._record.append(kill)
        if not left:
            shutil.rmtree(place)
        return kill

    def _kill(self, process: subprocess.Popen[bytes], moment: Moment, place: Path) -> bool:
        """Wait for the moment and send SIGKILL; return False when the process has ended before."""
        while not _has_come(moment, place) and process.poll() is None:
            time.sleep(_LOOK_SECONDS)
        try:
            process.wait(moment.seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        self._end(process)
        return process.returncode == -signal.SIGKILL

    def _heal(self, place: Path, pids: list[int]) -> tuple[list[str], list[str]]:
        """Heal twice, and return the actions of the first heal and the problems of either.

        The heals' PIDs are added to ``pids``.
        """
        done: list[str] = []
        wrong: list[str] = []
        for again in (False, True):
            process = self._start(place, ["heal", "--json"], subprocess.PIPE)
            pids.append(process.pid)
            output, errors = process.communicate()
            self._end(process)
            try:
                runs = json.loads(output)["runs"]
            except ValueError:
                wrong.append(f"heal ended with {process.returncode}: {errors.decode('utf-8', 'replace')}")
                continue
            wrong += [f"heal: {run['run']}: {text}" for run in runs for text in run["failed"]]
            wrong += [f"heal: {run['run']} is {run['outcome']}" for run in runs if again or run["outcome"] == "live"]
            done += [f"{run['run']}: {text}" for run in runs for text in run["done"] if not again]
        return done, wrong

    # Processes and places.

    def _run_of(self, name: CellName) -> list[str]:
        return ["run", str(self._cells.path(name).resolve()), *self._cells.arguments(name)]

    def _start(self, place: Path, arguments: list[str], out: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        with self._lock:  # no process is started after the order to end
            if self._stopped.is_set():
                raise _Interrupted
            process = subprocess.Popen(
                command_of(os.getpid(), [*arguments, "--reports", str(place)]),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL if out == subprocess.DEVNULL else subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is handed on, once
            )
            self._running.add(process)
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._running.discard(process)
        if self._stopped.is_set():
            raise _Interrupted

    def _stop(self) -> None:
        with self._lock:
            self._stopped.set()
            running = list(self._running)
        for process in running:
            process.send_signal(signal.SIGTERM)

    def _place(self, name: CellName, number: str) -> Path:
        return self._places / f"{stem_of(name)}-{number}"

    def _make_place(self, name: CellName, number: str) -> Path:
        place = self._place(name, number)
        place.mkdir(parents=True)
        return place

    def _tidy(self) -> None:
        """Undo the leftovers of a soak that was itself broken off. Directories with findings are kept."""
        kept = {self._place(kill.of, f"{kill.number:04d}") for kill in self._record.kills() if kill.left}
        for place in sorted(self._places.glob("*")):
            if place not in kept:
                heal_and_remove(place)
