"""The device of a script of PyTorch is read from its lines, and taken where this machine has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.machine.probe import Probe
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario

SCRIPT = """import argparse
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
{option}
options = parser.parse_args()
{device}
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(options.steps):
    optimizer.zero_grad()
    model(torch.ones(1, 1)).sum().backward()
    optimizer.step()
"""
IF_THERE = 'device = "cuda" if torch.cuda.is_available() else "cpu"'
BY_OPTION = 'parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])'
BACKEND = 'parser.add_argument("--backend", default="{}", choices=["gloo", "nccl"])'


def written(directory: Path, *arguments: str) -> Scenario:
    assert entry(["init", str(directory), "--launch", "torchrun --nproc-per-node 2 train.py", *arguments]) == 0
    (file,) = directory.glob("*.yaml")
    return load_scenario(file).cells[0].scenario


@pytest.mark.parametrize(
    ("option", "device", "here", "expected", "arguments"),
    [
        ("", 'dist.init_process_group("nccl")', False, "GPU", ()),
        ("", 'dist.init_process_group("cpu:gloo,cuda:nccl")', False, "GPU", ()),
        ("", "torch.cuda.set_device(0)", False, "GPU", ()),
        ("", "torch.nn.Linear(1, 1).cuda()", False, "GPU", ()),
        ("", 'dist.init_process_group("hccl")', False, "Ascend", ()),
        ("", 'dist.init_process_group("gloo")', True, "CPU", ()),
        ("", IF_THERE, False, "CPU", ()),
        ("", IF_THERE, True, "GPU", ()),
        ("", 'if "cuda" == str(dist): pass', True, "CPU", ()),
        (BACKEND.format("gloo"), "", True, "CPU", ()),
        (BACKEND.format("nccl"), "", False, "GPU", ()),
        (BY_OPTION, "", True, "GPU", ()),
        (BY_OPTION, "", False, "CPU", ("--device=cpu",)),
    ],
)
def test_the_device_is_that_of_the_script_and_of_this_machine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    device: str,
    here: bool,
    expected: str,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.setattr("chaos.init.work.gpu", lambda machine: Probe("gpu", here, ""))
    (tmp_path / "train.py").write_text(SCRIPT.format(option=option, device=device))
    scenario = written(tmp_path)
    assert (scenario.job.device, scenario.job.arguments) == (expected, arguments)


def test_the_device_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(option=BY_OPTION, device=""))
    scenario = written(tmp_path, "--device", "GPU")
    assert (scenario.job.device, scenario.job.timings) == ("GPU", "hardware")
