"""How long `chaos run` takes until it starts the job, beside another revision of chaos.

    git worktree add ../other REVISION      # with a .venv of its own, in which it is installed by `pip install -e .`
    python benchmarks/start_time.py ../other/.venv/bin/chaos scenarios/mechanisms/ttp/plain-kill-rank.yaml

Each `chaos run` is interrupted, as by Ctrl-C, at the moment at which it is about to start the first process of the job.
So a measurement takes a second or two, and nothing is left. That job is the fault-free one: there is no baseline yet.
The two revisions are measured by turns. Printed are the medians, and the median of the pairs' ratios (this revision /
the other one), by the clock and of processor time: on a busy machine the latter tells more. Ends with 1 when the ratio
of processor times is above ``--limit``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT = 0.7

UNTIL_START = """
import json, os, runpy, sys, time
out, script = sys.argv[1:3]
sys.argv = sys.argv[2:]
seen = []
def hook(event, given):
    if event == "subprocess.Popen" and not seen and "CHAOS_RUN" in (given[3] or ()):
        seen.append(event)
        took = {"at": time.monotonic(), "processor": sum(os.times()[:4]), "modules": len(sys.modules)}
        with open(out, "w") as file:
            json.dump(took, file)
        raise KeyboardInterrupt
sys.addaudithook(hook)
runpy.run_path(script, run_name="__main__")
"""
"""Runs the script `chaos` until it starts a process with the environment of a job."""


@dataclass(frozen=True)
class Took:
    """Seconds until the job's start, by the clock and of the processor, and how many modules are loaded then."""

    wall: float
    processor: float
    modules: int


@dataclass(frozen=True)
class Revision:
    """One revision, by its script ``chaos``. ``compiled`` is where its bytecode is kept."""

    chaos: Path
    compiled: str

    def until_start(self, scenario: Path) -> Took:
        """Measure one call. Raises SystemExit where the job is not started."""
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory, "took.json")
            command = [str(self.chaos.parent / "python"), "-c", UNTIL_START, str(out), str(self.chaos)]
            command += ["run", str(scenario), "--reports", f"{directory}/reports"]
            environment = {**os.environ, "PYTHONPYCACHEPREFIX": self.compiled, "PYTHONDONTWRITEBYTECODE": ""}
            began = time.monotonic()
            ended = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=directory, env=environment
            )
            if not out.is_file():
                raise SystemExit(f"{self.chaos} has started no job (exit {ended.returncode}):\n{ended.stderr}")
            took = json.loads(out.read_text("utf-8"))
            return Took(took["at"] - began, took["processor"], took["modules"])


def compare(ours: Revision, theirs: Revision, scenario: Path, pairs: int) -> float:
    """Print one scenario. Returns the ratio of processor times."""
    ours.until_start(scenario), theirs.until_start(scenario)  # The first runs compile and fill the page cache.
    took = [(ours.until_start(scenario), theirs.until_start(scenario)) for _ in range(pairs)]
    ratio = statistics.median(a.processor / b.processor for a, b in took)
    print(f"{scenario.stem}: {pairs} pairs; modules {took[0][0].modules}, theirs {took[0][1].modules}")
    _show("processor time", [a.processor for a, _ in took], [b.processor for _, b in took])
    _show("wall clock", [a.wall for a, _ in took], [b.wall for _, b in took])
    return ratio


def _show(what: str, ours: Sequence[float], theirs: Sequence[float]) -> None:
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    medians = f"{statistics.median(ours):.2f} s, theirs {statistics.median(theirs):.2f} s"
    print(f"  {what:<14}  {medians}, ratio {ratio:.2f}", flush=True)


def main() -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("theirs", type=Path, help="the other revision's `chaos`, in its .venv/bin")
    parser.add_argument("scenarios", type=Path, nargs="+", help="files that both revisions can read")
    parser.add_argument("--ours", type=Path, default=Path(sys.executable).parent / "chaos")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--limit", type=float, default=LIMIT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as compiled:
        # Links are not followed: that of the interpreter leads out of the .venv.
        ours, theirs = (Revision(Path.cwd() / one, compiled) for one in (options.ours, options.theirs))
        ratios = [compare(ours, theirs, scenario.resolve(), options.pairs) for scenario in options.scenarios]
    return int(max(ratios) > options.limit)


if __name__ == "__main__":
    sys.exit(main())
