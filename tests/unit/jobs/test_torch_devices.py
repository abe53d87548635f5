"""A job of the kind ``torch`` on GPUs asks PyTorch for them, and for no device of another vendor."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.jobs.torch.devices import devices, gpu
from chaos.jobs.torch.job import KIND
from chaos.run.prepare.needs import needs_of_scenario
from chaos.scenario.models.scenario import Scenario

TWO = ["Tesla T4", "Tesla T4"]


def scenario(**job: Any) -> Scenario:
    job = {"kind": "torch", "device": "GPU", "script": "train.py", "steps": 12, **job}
    return Scenario.model_validate({"chaos": 1, "name": "x", "cluster": {"ranks": 2}, "job": job})


def interpreter(tmp_path: Path, gpus: object, name: str = "python") -> Path:
    """Make a program that answers as an interpreter does whose PyTorch sees these GPUs."""
    path = tmp_path / name
    releases = json.dumps({"python": "3.11.4", "torch": "2.7.1"})
    path.write_text(f"""#!/bin/sh
case "$3" in *torch.cuda*) echo 'a warning'; echo '{json.dumps(gpus)}' ;; *) echo '{releases}' ;; esac
""")
    path.chmod(0o755)
    return path


def machine(version: str | None, python: Path = Path(sys.executable)) -> Any:
    return SimpleNamespace(version=lambda name: version if name == "torch" else None, executable=python)


def test_a_job_on_gpus_needs_one_and_no_npu() -> None:
    needs = needs_of_scenario(scenario())
    assert "gpu" in needs
    assert "npu" not in needs
    assert not {"gpu", "npu"} & set(needs_of_scenario(scenario(device="CPU")))
    assert "gpu" not in needs_of_scenario(scenario(device="Ascend"))
    assert KIND.probes["gpu"] is gpu


@pytest.mark.parametrize(
    ("version", "gpus", "ok", "seen"),
    [
        ("2.7.1", TWO, True, "PyTorch sees 2 Tesla T4"),
        ("2.7.1", [], False, "PyTorch sees no GPU"),
        ("2.7.1", {"no": "list"}, False, "does not say which GPUs its PyTorch sees"),
        ("2.7.1+cpu", TWO, False, "PyTorch 2.7.1+cpu is a build for the CPU"),
        (None, TWO, False, "no PyTorch"),
    ],
)
def test_the_probe_asks_pytorch_itself(tmp_path: Path, version: str | None, gpus: object, ok: bool, seen: str) -> None:
    probe = gpu(machine(version, interpreter(tmp_path, gpus)))
    assert (probe.need, probe.ok, bool(probe.advice)) == ("gpu", ok, not ok)
    assert seen in probe.seen


def test_a_python_that_cannot_be_asked_sees_none(tmp_path: Path) -> None:
    probe = gpu(machine("2.7.1", tmp_path / "none"))
    assert not probe.ok
    assert "does not say which GPUs" in probe.seen


@pytest.mark.parametrize(
    ("gpus", "device", "refused"),
    [(TWO, "GPU", ""), ([], "GPU", "PyTorch sees no GPU"), (7, "GPU", "does not say which GPUs"), ([], "CPU", "")],
)
def test_the_interpreter_of_a_job_is_asked_in_its_place(
    tmp_path: Path, gpus: object, device: str, refused: str
) -> None:
    (tmp_path / "train.py").write_text("import torch")
    own = scenario(python=str(interpreter(tmp_path, gpus)), device=device)
    assert "gpu" not in KIND.needs_for(own)
    problems = [(path, message) for path, message, _ in KIND.missing_files(own, tmp_path)]
    assert [path for path, _ in problems] == (["job.python"] if refused else [])
    assert all(refused in message for _, message in problems)


def test_another_gpu_makes_another_baseline(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch")
    two, one = interpreter(tmp_path, TWO), interpreter(tmp_path, TWO[:1], "python-of-another-machine")
    assert KIND.fingerprint(scenario(python=str(two)), tmp_path)["GPUs"] == "PyTorch sees 2 Tesla T4"
    assert KIND.fingerprint(scenario(python=str(one)), tmp_path)["GPUs"] == "PyTorch sees 1 Tesla T4"
    assert "GPUs" not in KIND.fingerprint(scenario(python=str(one), device="CPU"), tmp_path)
    assert devices(two) == tuple(TWO)
