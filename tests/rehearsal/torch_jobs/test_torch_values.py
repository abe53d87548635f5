"""Values that are changed in real jobs of PyTorch: a job that reacts to one, or that does not have it, is no pass."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos, Done

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

UPDATE = """        loss.backward()
        optimizer.step()
"""
RAISES = """        loss.backward()
        if float(nn.utils.clip_grad_norm_(model.parameters(), 1e9)) > 50:
            raise RuntimeError("abnormal norm")
        optimizer.step()
"""
LEAVES_OUT = """        (loss * (step != 7)).backward()
        optimizer.step()
"""


def run(fresh: Chaos, directory: Path, shipped: str, update: str = UPDATE, **fault: Any) -> Done:
    """Run a shipped scenario with another update in its script, and with other keys of its fault."""
    (directory / "jobs").mkdir()
    jobs = SHIPPED / "torch" / "jobs"
    script = (jobs / "train_ddp.py").read_text()
    assert script.count(UPDATE) == 1
    (directory / "jobs" / "train_ddp.py").write_text(script.replace(UPDATE, update))
    for other in ("train_fsdp.py", "train_zero.py"):
        shutil.copy(jobs / other, directory / "jobs")
    scenario = yaml.safe_load((SHIPPED / "torch" / f"{shipped}.yaml").read_text())
    scenario["cluster"] |= fault.pop("cluster", {})
    scenario["job"] |= fault.pop("job", {})
    scenario["faults"][0] |= fault
    path = directory / "scenario.yaml"
    path.write_text(yaml.safe_dump(scenario))
    return fresh.run(path)


def test_a_job_that_reacts_to_the_norm_breaks_the_promise_that_nothing_does(fresh: Chaos, tmp_path: Path) -> None:
    done = run(fresh, tmp_path, "torch-spike", RAISES)
    assert done.code == 1, done
    assert "was started again in attempt train" in done.run.result["headline"]["text"]


def test_a_spike_without_effect_is_unknown(fresh: Chaos, tmp_path: Path) -> None:
    done = run(fresh, tmp_path, "torch-spike", LEAVES_OUT)
    assert done.code == 2, done
    assert "the fault changed nothing that counts" in done.run.result["headline"]["text"]


GRADIENT = {"trigger": {"step": 7, "phase": "allreduce.enter"}, "parameters": {"where": "gradient", "bit": 30}}
FULL = {"cluster": {"parallel": {"data_parallel": 4, "shard": "full"}}, "job": {"script": "jobs/train_fsdp.py"}}
ZERO = {"cluster": {"parallel": {"data_parallel": 4, "shard": "optimizer"}}, "job": {"script": "jobs/train_zero.py"}}
LOSS = {"kind": "nonfinite-loss", "trigger": {"step": 7, "phase": "forward"}, "parameters": {"value": "nan"}}


@pytest.mark.parametrize(
    ("shipped", "keys"),
    [
        ("torch-flip-bit", GRADIENT),
        ("torch-flip-bit", LOSS),
        ("torch-flip-bit", FULL),
        ("torch-flip-bit", ZERO),
        ("torch-spike", FULL),
        ("torch-flip-bit", {**ZERO, **GRADIENT}),
    ],
    ids=["gradient", "loss", "weight of FSDP", "weight of ZeRO", "spike of FSDP", "gradient of ZeRO"],
)
def test_values_are_changed_however_the_state_is_spread(
    fresh: Chaos, tmp_path: Path, shipped: str, keys: dict[str, Any]
) -> None:
    done = run(fresh, tmp_path, shipped, **keys)
    assert done.code == 0, done
    proofs = [*done.run.history.select("fault.altered"), *done.run.history.select("fault.scaled")]
    assert [event.rank for event in proofs] == [1]
