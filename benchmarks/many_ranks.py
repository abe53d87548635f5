"""How the work of the harness grows with the ranks: its processor time a rank, with few ranks and with many.

Run: ``python benchmarks/many_ranks.py``. Runs ``plain-kill-rank`` with each number of ranks, without a baseline, and
prints the processor time of the process of ``chaos`` alone: neither its job's nor that of its own start, which is the
same for any number of ranks. Ends with 1 when a rank of the many costs more than the limit, or a run does not pass.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 1.3
"""The work a rank with many ranks, as a multiple of that with few."""

SCENARIO = Path(__file__).parents[1] / "scenarios" / "mechanisms" / "ttp" / "plain-kill-rank.yaml"
SECONDS = 3600

CALL = """\
import resource, sys
from chaos.cli.main import entry
try:
    code = entry()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, file=sys.stderr)
sys.exit(code)
"""


def used(*arguments: str) -> float:
    """Processor seconds of a call of ``chaos``. Raises CalledProcessError when it does not end with 0."""
    command = [sys.executable, "-c", CALL, *arguments]
    done = subprocess.run(
        command, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    return float(done.stderr.split()[-1])


def of_a_run(ranks: int) -> float:
    """Processor seconds of a run with so many ranks, without those that a plan of it takes: that is the start."""
    number = ("--set", f"ranks={ranks}")
    with tempfile.TemporaryDirectory() as reports:
        run = used("run", str(SCENARIO), *number, "--baseline", "none", "--reports", reports, "--json")
    return run - used("plan", str(SCENARIO), *number)


def main() -> int:
    """Measure, print, and say by the exit code whether the limit is kept."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--few", type=int, default=16)
    arguments.add_argument("--many", type=int, default=128)
    chosen = arguments.parse_args()
    each = {}
    for ranks in (chosen.few, chosen.many):
        try:
            seconds = of_a_run(ranks)
        except subprocess.CalledProcessError as error:
            print(f"{ranks} ranks: the run ended with {error.returncode}\n{error.stderr}")
            return 1
        each[ranks] = seconds / ranks
        print(f"{ranks} ranks: {seconds:.2f} s, {1000 * each[ranks]:.1f} ms a rank", flush=True)
    grown = each[chosen.many] / each[chosen.few]
    kept = grown <= LIMIT
    print(f"{grown:.2f} times as much a rank; limit {LIMIT:g}: {'kept' if kept else 'exceeded'}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
