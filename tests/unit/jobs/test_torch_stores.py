"""Plan and doctor say for each release of PyTorch whether ranks that torchrun starts again meet (F-16)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.cli.main import entry
from chaos.jobs.torch.job import KIND
from chaos.jobs.torch.probe import torch_probe
from chaos.jobs.torch.stores import lost_starts
from chaos.scenario.models.scenario import Scenario

SHARED, STATIC, OWN = {"store": "shared"}, {"rendezvous": "static"}, {"store": "own"}
OLD, BY_NODE = "with the addresses of the ended ranks in it", "by the number of its own restarts"


def scenario(torchrun: dict[str, str], nodes: int = 1, **job: Any) -> Scenario:
    job = {"kind": "torch", "script": "train.py", "steps": 12, "torchrun": torchrun, **job}
    return Scenario.model_validate({"chaos": 1, "name": "x", "cluster": {"ranks": 4, "nodes": nodes}, "job": job})


@pytest.mark.parametrize(
    ("version", "torchrun", "nodes", "words"),
    [
        ("2.1.2", SHARED, 1, ""),
        ("2.1.2", SHARED, 2, ""),
        ("2.4.1+cpu", SHARED, 2, ""),
        ("2.5.1", SHARED, 1, ""),
        ("2.5.1", SHARED, 2, BY_NODE),
        ("2.6.0", SHARED, 1, OLD),
        ("2.13.0+cpu", SHARED, 2, OLD),
        ("2.1.2", STATIC, 1, ""),
        ("2.1.2", STATIC, 2, BY_NODE),
        ("2.5.1", STATIC, 1, ""),
        ("2.6.0", STATIC, 1, OLD),
        ("3.0", STATIC, 1, OLD),
        (None, SHARED, 1, "PyTorch 2.6 and later"),
        (None, STATIC, 1, "PyTorch 2.6 and later"),
        ("2.13.0", OWN, 2, ""),
        (None, OWN, 1, ""),
    ],
)
def test_the_ranks_of_a_later_start_meet_or_not_by_the_release(
    version: str | None, torchrun: dict[str, str], nodes: int, words: str
) -> None:
    why = lost_starts(scenario(torchrun, nodes), version)
    assert bool(why) == bool(words)
    assert words in why
    assert not why or version is None or f"PyTorch {version}; F-16" in why


@pytest.mark.parametrize("torchrun", [SHARED, OWN])
def test_a_release_that_closes_its_rendezvous_before_a_restart_is_told(torchrun: dict[str, str]) -> None:
    assert "closes its rendezvous" in lost_starts(scenario(torchrun), "2.3.1+cu121")
    assert lost_starts(scenario(torchrun), "2.2.2") == lost_starts(scenario(torchrun), "2.4.0") == ""


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.1.2+cu121", "shares no store between restarts, but with the static rendezvous (F-16)"),
        ("2.4.1", "shares no store between restarts, but with the static rendezvous (F-16)"),
        ("2.3.1", "starts no ranks again with c10d, since it closes its rendezvous (pytorch#123678)"),
        ("2.5.1", "with keys for each restart of a node (F-16): for several nodes set TORCH_DISABLE_SHARE_RDZV"),
        ("2.6.0", "shares a store between restarts (F-16): set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"),
    ],
)
def test_the_doctor_says_what_the_release_does(version: str, words: str) -> None:
    assert words in torch_probe(version).seen


FILE = """chaos: 1
name: own
cluster: {ranks: 2}
job:
  {kind: torch, script: train.py, steps: 12, checkpoint_interval: 4, python: ./python, protection: [ELASTIC],
   torchrun: {store: shared}}
faults: [{kind: kill, target: {rank: 1}, trigger: {step: 7, phase: forward}}]
expect: {mechanism: ELASTIC}
"""


@pytest.mark.parametrize(("version", "code"), [("2.4.1", 0), ("2.5.1", 0), ("2.7.1", 64)])
def test_the_plan_asks_the_interpreter_of_the_job(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], version: str, code: int
) -> None:
    (tmp_path / "train.py").write_text("import torch")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{json.dumps({'python': '3.11.4', 'torch': version})}'\n")
    python.chmod(0o755)
    (tmp_path / "own.yaml").write_text(FILE)
    assert entry(["plan", str(tmp_path / "own.yaml")]) == code
    said = capfd.readouterr()
    assert code == 0 or f"(PyTorch {version}; F-16)" in said.err


def test_the_release_of_ranks_on_other_machines_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.jobs.torch.own_python.version_of", lambda name: "2.4.1")
    shared = scenario(SHARED)
    assert not KIND.traits_for(shared, tmp_path, ()).lost_starts
    assert "2.6 and later" in KIND.traits_for(shared, tmp_path, {"torch"}).lost_starts
    assert "2.6 and later" in KIND.traits_for(scenario(SHARED, python="./none"), tmp_path, ()).lost_starts
