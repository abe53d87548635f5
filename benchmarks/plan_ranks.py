"""How long a plan takes, by number of ranks: a new process for each, from start to exit, its JSON included.

Run: ``python benchmarks/plan_ranks.py``. Prints the times, the limits, and how the time over that of a small plan grows
compared with the ranks; 1 is linear. Ends with 1 when a limit is exceeded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMITS = {16_384: 1.0, 131_072: 8.0}
"""Ranks → seconds that a plan may take."""

SMALL = 8

SCENARIO = """\
chaos: 1
name: plan-{ranks}
cluster:
  nodes: {nodes}
  ranks: {ranks}
  parallel:
    data_parallel: 8
    model_parallel: {model}
    enable_parallel_optimizer: true
    optimizer_weight_shard_size: 4
job: {{steps: 20, protection: [TTP]}}
faults:
  - kind: kill
    target: {{rank: {ranks_less_1}}}
    trigger: {{step: 6, phase: allreduce.enter}}
baseline: none
"""

PLAN = """\
import sys
from chaos.plan.build import build_plan
from chaos.plan.io import dumps
from chaos.plan.points import PHASE_ORDER
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.render import render
from chaos.plan.source import Source
from chaos.plan.traits import JobTraits
from chaos.scenario.load import load_scenario

(cell,) = load_scenario(sys.argv[1]).cells
plan = build_plan(
    cell.scenario,
    Source(sys.argv[1], cell.lines, cell.name),
    traits=JobTraits(frozenset(PHASE_ORDER), "mindspore"),
    kinds={"kill": PlannedKind("death")},
    draw_seed=lambda: 1,
)
sys.stdout.write(render(plan) + dumps(plan))
"""


def seconds(ranks: int, directory: Path, repeats: int) -> float:
    """Shortest wall time of a process that loads, plans, renders and writes JSON."""
    scenario = directory / f"plan-{ranks}.yaml"
    text = SCENARIO.format(ranks=ranks, ranks_less_1=ranks - 1, nodes=ranks // 8, model=ranks // 8)
    scenario.write_text(text, encoding="utf-8")
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", PLAN, str(scenario)], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> int:
    """Measure, print, and say by the exit code whether every limit is kept."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=5, help="processes for each number of ranks")
    repeats = arguments.parse_args().repeats
    with tempfile.TemporaryDirectory() as directory:
        base = seconds(SMALL, Path(directory), repeats)
        print(f"{SMALL:>9,} ranks  {base:6.3f} s")
        found = {ranks: seconds(ranks, Path(directory), repeats) for ranks in LIMITS}
    for ranks, limit in LIMITS.items():
        print(f"{ranks:>9,} ranks  {found[ranks]:6.3f} s  {found[ranks] / limit:5.2f} of the limit of {limit:g} s")
    few, many = LIMITS
    grown = (found[many] - base) / max(found[few] - base, 1e-9)
    print(f"growth: {grown:.1f} times the time for {many / few:g} times the ranks, ratio {grown / (many / few):.2f}")
    return int(any(found[ranks] > limit for ranks, limit in LIMITS.items()))


if __name__ == "__main__":
    sys.exit(main())
