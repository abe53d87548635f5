"""The job with sliced weights trains what the same script trains on whole ones: only the order of sums differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.evidence.baseline import loss_of
from chaos.evidence.facts import digests
from tests.rehearsal.kit import Chaos, said

STEPS = 4
RELATIVE = 1e-4
"""Single precision, and sums in another order. A slice in the wrong place or a gradient counted twice is far off."""

SCENARIO = """
chaos: 1
name: {name}
baseline: none
cluster:
  ranks: {ranks}
  parallel: {{data_parallel: 2, {parallel}}}
job:
  steps: {steps}
  {more}
"""
# Named as the scenario's own, the script is told nothing about slices and keeps the weights whole.
LAYOUTS = {
    "whole": (2, "model_parallel: 1", "script: sliced.py"),
    "by-columns-and-rows": (4, "model_parallel: 2", "seed: 1"),
    "in-optimizer-shards": (2, "enable_parallel_optimizer: true, optimizer_weight_shard_size: 2", "seed: 1"),
}


@pytest.mark.nightly
def test_slices_train_what_whole_weights_train(fresh: Chaos, tmp_path: Path) -> None:
    curves = {}
    for name, (ranks, parallel, more) in LAYOUTS.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(SCENARIO.format(name=name, ranks=ranks, parallel=parallel, steps=STEPS, more=more))
        done = fresh.run(path)
        assert done.code == 0, said([check for check in done.run.result["checks"] if check["verdict"] != "pass"])
        curves[name] = {
            (rank // (ranks // 2), step): loss_of(event)
            for rank, by_step in digests(done.run.history, "train").items()
            for step, event in by_step.items()
        }
    whole = curves.pop("whole")
    assert len(whole) == 2 * STEPS
    for losses in curves.values():
        assert losses == pytest.approx(whole, rel=RELATIVE)
