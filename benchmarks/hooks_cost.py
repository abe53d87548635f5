"""What the agent's hooks cost a step, as each rank of a real job of a hundred steps measures it.

Run: ``python benchmarks/hooks_cost.py``, on a machine that does nothing else. Prints each rank's median in µs,
and as a multiple of what writing a line of JSON takes in as many busy processes at the same time. Ends with 1 when the
least disturbed rank exceeds the limit.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_US = 20.0
"""Microseconds a step. A dozen steps would not do: in the first ones nothing is in the processor's caches."""

RANKS = 4
JOB = Path(__file__).with_name("hundred-steps.yaml")

YARDSTICK = """\
import json, statistics, time
took = []
for step in range(20000):
    began = time.perf_counter_ns()
    json.dumps({"event": "step.begin", "mono": began, "step": step, "rank": 0})
    took.append((time.perf_counter_ns() - began) / 1000)
print(statistics.median(took))
"""


def yardstick_us() -> float:
    """Microseconds of one line of JSON, the median over processes that run at the same time."""
    running = [subprocess.Popen([sys.executable, "-c", YARDSTICK], stdout=subprocess.PIPE) for _ in range(RANKS)]
    return statistics.median(float(process.communicate(timeout=120)[0]) for process in running)


def hooks_us(reports: str) -> dict[int, float]:
    """Each rank's own median."""
    subprocess.run(
        [sys.executable, "-m", "chaos", "run", str(JOB), "--reports", reports],
        check=True,
        timeout=600,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    lines = [
        json.loads(line)
        for file in Path(reports, "latest", "history").glob("train-rank_*.jsonl")
        for line in file.read_text("utf-8").splitlines()
        if '"agent.cost"' in line
    ]
    return {line["rank"]: line["hooks_us_median"] for line in lines}


def main() -> int:
    before = yardstick_us()
    with tempfile.TemporaryDirectory() as reports:
        costs = hooks_us(reports)
    line = statistics.mean((before, yardstick_us()))
    for rank, cost in sorted(costs.items()):
        print(f"rank {rank}: {cost:.1f} µs a step, {cost / line:.1f} lines of JSON ({line:.1f} µs each)")
    good = len(costs) == RANKS and min(costs.values()) < LIMIT_US
    print(f"limit {LIMIT_US:g} µs: {'kept' if good else 'exceeded'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
