"""What the tests of real jobs work with: the command line as a process, and the runs that it leaves."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.history.event import Event
from chaos.history.ledger import Ledger
from chaos.history.reader import History, read_history
from chaos.machine.job.ending import end_processes
from chaos.machine.job.processes import find_run_processes
from chaos.report.known_finding import signatures

T = TypeVar("T")

WAIT_SECONDS = 600.0
"""For whatever a test waits for: only a test that would never end is ended by it."""

SCENARIOS = Path(__file__).parent / "scenarios"
"""Scenarios that only tests run; most of them are meant to go wrong."""

_CALL = """
import signal, sys
from chaos.cli.main import entry
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    signal.signal(number, handler)  # whatever the tests were started to ignore, as background jobs are
sys.exit(entry())
"""


@dataclass(frozen=True)
class Run:
    """A run's directory."""

    path: Path

    @property
    def token(self) -> str:
        """Its identity, the CHAOS_RUN of its processes."""
        token: str = json.loads((self.path / "run.json").read_bytes())["token"]
        return token

    @property
    def private(self) -> Path:
        """Its private directory while it goes on."""
        return Path(tempfile.gettempdir()) / f"chaos-{self.token[-16:]}"

    @property
    def history(self) -> History:
        """Its history as it is now."""
        return read_history(self.path / "history")

    @property
    def baseline(self) -> History:
        """The history of the fault-free run that it was compared with."""
        return read_history(self.path / "baseline" / "history")

    @property
    def result(self) -> dict[str, Any]:
        """Its result.json."""
        result: dict[str, Any] = json.loads((self.path / "result.json").read_bytes())
        return result

    def left(self) -> list[str]:
        """What is left of it outside its directory, and what its ledger still has open."""
        found = [f"process {process.pid}: {' '.join(process.cmdline)}" for process in find_run_processes(self.token)]
        # Looked for in another way too: by the run's directory in any environment or command line. Its name would not
        # do: tests that run beside this one may have a copy of the same baseline.
        directory = str(self.path.resolve())
        found += [f"process {pid} names {directory}" for pid in _mentioning(directory)]
        found += [str(self.private)] if self.private.exists() else []
        found += [f"open undo step {step.id}" for step in Ledger(self.path / "undo.jsonl").open_steps()]
        return found

    def end(self) -> None:
        """End what a failed test may have left of it."""
        end_processes(lambda: find_run_processes(self.token), grace_seconds=0, clock=SYSTEM_CLOCK)
        shutil.rmtree(self.private, ignore_errors=True)


@dataclass(frozen=True)
class Done:
    """A call of the command line that has ended."""

    code: int
    output: str
    errors: str

    @property
    def json(self) -> dict[str, Any]:
        """What it printed."""
        assert self.output, f"ended with {self.code} and printed nothing: {self.errors}"
        value: dict[str, Any] = json.loads(self.output)
        return value

    @property
    def runs(self) -> list[Run]:
        """The run of each cell."""
        return [Run(Path(cell["directory"])) for cell in self.json["cells"]]

    @property
    def run(self) -> Run:
        """The run of its only cell."""
        (only,) = self.runs
        return only


class Harness:
    """A call of the command line that goes on."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path, errors: Path, reports: Path) -> None:
        self.process = process
        self._output = output
        self._errors = errors
        self._reports = reports

    def until(self, what: str, condition: Callable[[], T | None]) -> T:
        """Wait until ``condition`` gives something. Fails when it does not in time, or the call ends before."""

        def look() -> T | None:
            ended = self.process.poll() is not None
            found = condition()
            assert found or not ended, f"ended with {self.process.returncode} before: {what}\n{self.errors}"
            return found

        return wait_for(what, look, seconds=WAIT_SECONDS, detail=lambda: self.errors)

    def run(self, name: str = "kill-rank") -> Run:
        """The newest run of that name, waited for."""
        return Run(self.until(f"a run of {name}", lambda: _newest(self._reports, name)))

    def event(self, run: Run, name: str, **match: Any) -> Event:
        """The first event like this of the run, waited for."""
        return self.until(f"{name} {match}", lambda: run.history.first(name, **match))

    def signal(self, number: int) -> None:
        """Send it a signal; to it alone, as a supervisor does."""
        self.process.send_signal(number)

    def end(self, seconds: float = WAIT_SECONDS) -> Done:
        """Wait for its end."""
        code = self.process.wait(seconds)
        return _not_by_a_signature(Done(code, self.output, self.errors))

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._output.read_text("utf-8")

    @property
    def errors(self) -> str:
        """What it has said so far on standard error, where progress goes."""
        return self._errors.read_text("utf-8")


class Chaos:
    """The command line, with a reports directory of one's own. Jobs take one core, so that two tests can run."""

    def __init__(self, reports: Path, place: Path) -> None:
        self.reports = reports
        self._place = place
        self._started: list[Harness] = []
        self.prefix: tuple[str, ...] = ()
        """Before every command line: what brings it to where a test wants it."""
        self.python = sys.executable
        """What runs it, and its jobs' ranks."""

    def start(self, *arguments: str | Path, patch: str = "", env: dict[str, str] | None = None) -> Harness:
        """Start the command line; ``patch`` is Python that is executed in its process before."""
        number = len(self._started)
        output, errors = (self._place / f"{number}.{kind}" for kind in ("out", "err"))
        command = [*self.prefix, self.python, "-c", f"{patch}\n{_CALL}", *map(str, arguments)]
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                command,
                cwd=self._place,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        harness = Harness(process, output, errors, self.reports)
        self._started.append(harness)
        return harness

    def __call__(self, *arguments: str | Path, patch: str = "", env: dict[str, str] | None = None) -> Done:
        """Run the command line to its end."""
        return self.start(*arguments, patch=patch, env=env).end()

    def start_run(self, scenario: str | Path, *options: str, patch: str = "") -> Harness:
        """Start ``chaos run``."""
        return self.start("run", scenario, "--json", "--cores", "1", "--reports", self.reports, *options, patch=patch)

    def run(self, scenario: str | Path, *options: str, patch: str = "") -> Done:
        """``chaos run`` to its end."""
        return self.start_run(scenario, *options, patch=patch).end()

    def analyze(self, run: Run, patch: str = "") -> Done:
        """``chaos analyze`` of a run."""
        return self("analyze", run.path, "--json", patch=patch)

    def heal(self) -> Done:
        """``chaos heal --all``."""
        return self("heal", "--all", "--json", "--reports", self.reports)

    def runs(self) -> list[Run]:
        """Every run in the reports directory, baselines included."""
        made = sorted(path.parent for path in self.reports.glob("*/run.json"))
        return [Run(path) for path in made if not path.is_symlink()]

    def close(self) -> None:
        """End whatever a failed test has left."""
        for harness in self._started:
            if harness.process.poll() is None:
                harness.process.send_signal(signal.SIGKILL)
                harness.process.wait()
        for run in self.runs():
            run.end()


Once = Callable[[str, Callable[[Chaos], Done]], Done]
"""Makes a run of a name once for all workers (fixture ``once``)."""


def checks_of(result: dict[str, Any], verdict: str) -> list[dict[str, Any]]:
    """What the checks say with that verdict."""
    return [check for check in result["checks"] if check["verdict"] == verdict]


def said(checks: Sequence[dict[str, Any]]) -> str:
    """The texts of checks, for comparisons and for the messages of failed tests."""
    return "\n".join(
        f"{check['name']}: {check['expected']} | {check['seen']} | {' '.join(check['where'])}" for check in checks
    )


def _not_by_a_signature(done: Done) -> Done:
    """Return a call that has ended; the test is an expected failure where only a known defect's signature failed.

    MindSpore may end a rank by SIGSEGV at its end (F-15), whatever the test is about. The id is printed.
    """
    try:
        checks = [check for cell in json.loads(done.output)["cells"] for check in cell["result"]["checks"]]
    except (ValueError, KeyError, TypeError):
        return done
    if found := signatures(checks):
        pytest.xfail(f"{', '.join(found)}: known defect, recognised by its signature; see docs/reference/findings.md")
    return done


def _newest(reports: Path, name: str) -> Path | None:
    runs = [path.parent for path in reports.glob(f"{name}-*/run.json")]
    return max(runs, key=lambda path: (path / "run.json").stat().st_mtime_ns, default=None)


def _mentioning(text: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            seen = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in seen:
            found.append(int(process.name))
    return found
