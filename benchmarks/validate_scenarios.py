"""Time the loading and validation of many scenarios, beside plain ``yaml.load`` of the same files.

    python benchmarks/validate_scenarios.py [--files 1000]

Prints milliseconds a file for both, their ratio, and the total with the imports.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

SCENARIO = """\
# yaml-language-server: $schema=chaos-schema.json
chaos: 1
name: kill-rank-{number}
description: Kill one rank of a data-parallel job and judge the end-of-life checkpoint.
tags: [ttp, kill]

variables:
  victim: {victim}
  step: {step}

cluster:
  platform: local
  nodes: 1
  ranks: 8
  parallel:
    data_parallel: 8
    enable_parallel_optimizer: true
    optimizer_weight_shard_size: 4

job:
  kind: rehearsal
  steps: 30
  steps_per_epoch: 10
  checkpoint_interval: 10
  environment:
    GLOG_v: "2"
  protection: [TTP]

faults:
  - id: kill
    kind: process.kill
    target:
      rank: ${{victim}}
    trigger:
      step: ${{step}}
      phase: step.begin

expect:
  mechanism: TTP
  checkpoint:
    ranks: [0, 2, 3, 5]
  recovery:
    total: 90s
    phases:
      detection: 2s

deadlines:
  run: 5m
"""


def main() -> None:
    """Write the files, load them both ways, print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000, help="how many files (default 1000)")
    count: int = parser.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"scenario-{number}.yaml") for number in range(count)]
        for number, path in enumerate(paths):
            path.write_text(SCENARIO.format(number=number, victim=number % 8, step=number % 30 + 1), encoding="utf-8")
        begin = time.perf_counter()
        import yaml

        yaml_imported = time.perf_counter()
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for path in paths:
            yaml.load(path.read_bytes(), Loader=loader)
        yaml_done = time.perf_counter()
        from chaos.scenario.find import iter_scenarios
        from chaos.scenario.load import load_scenario
        from chaos.scenario.names import KnownNames

        imported = time.perf_counter()
        names = KnownNames({"process.kill"}, {"rehearsal"}, {"local"})
        for path in iter_scenarios([folder]):
            load_scenario(path, names=names)
        done = time.perf_counter()
    plain, checked = (yaml_done - yaml_imported) / count, (done - imported) / count
    print(f"yaml.load ({loader.__name__}): {plain * 1e3:.3f} ms a file, import {yaml_imported - begin:.3f} s")
    print(f"load_scenario:          {checked * 1e3:.3f} ms a file, import {imported - yaml_done:.3f} s")
    print(f"ratio {checked / plain:.2f}, {count} scenarios found, loaded and validated in {done - yaml_done:.2f} s")


if __name__ == "__main__":
    main()
