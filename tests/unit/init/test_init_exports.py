"""What a script of PyTorch saves and never loads is no checkpoint, as far as its text tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.scenario.load import load_scenario
from chaos.scenario.models.job import Job

SCRIPT = """\
import os, shutil
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
done = 0
if os.path.exists({load}):
    saved = torch.load({load})
    model.load_state_dict(saved["model"])
    done = saved["step"]
for step in range(done + 1, 25):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    if step % 3 == 0:
        torch.save(model.state_dict(), {other})
    if step % 4 == 0:
        torch.save({{"model": model.state_dict(), "step": step}}, {save})
        {after}
"""


def job(directory: Path, **places: str) -> Job:
    after = places.pop("after", "pass")
    (directory / "train.py").write_text(SCRIPT.format(**places, after=after))
    assert entry(["init", str(directory), "--launch", "torchrun --nproc-per-node 2 train.py"]) == 0
    return load_scenario(directory / "train-kill.yaml").cells[0].scenario.job


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ({"load": '"last.pt"', "save": '"last.pt"', "other": '"best.pt"'}, ("best.pt",)),
        ({"load": '"out/last.pt"', "save": '"out/last.pt"', "other": 'f"out/step-{step}.pt"'}, ("step-*.pt",)),
        (
            {
                "load": '"last.pt"',
                "save": '"last.tmp"',
                "other": '"best.pt"',
                "after": 'os.replace("last.tmp", "last.pt")',
            },
            ("best.pt",),
        ),
    ],
    ids=["another name", "the name of each step", "a renamed checkpoint"],
)
def test_what_no_line_loads_is_exported_and_its_interval_is_not_that_of_the_job(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], places: dict[str, str], names: tuple[str, ...]
) -> None:
    written = job(tmp_path, **places)
    assert (written.exports, written.checkpoint_interval) == (names, 4)
    assert "which no line loads" in capfd.readouterr().out
    assert "train.py:17: no line loads it" in (tmp_path / "train-kill.yaml").read_text()


@pytest.mark.parametrize(
    "places",
    [
        {"load": "os.environ['FROM']", "save": '"last.pt"', "other": '"best.pt"'},
        {"load": '"last.pt"', "save": '"last.pt"', "other": "os.environ['BEST']"},
        {"load": '"last.pt"', "save": '"last.pt"', "other": 'f"{step}.pt"'},
        {"load": '"last.pt"', "save": '"last.pt"', "other": 'f"l{step}.pt"'},
        {"load": '"newest.pt"', "save": '"full.pt"', "other": '"best.pt"'},
        {"load": '"best.pt"', "save": '"full.pt"', "other": '"best.pt"', "after": 'torch.load("newest.pt")'},
    ],
    ids=[
        "a load of any file",
        "a save of any file",
        "a name that says nothing",
        "a name that may be the checkpoint's",
        "a load of a file that no line saves",
        "a further load of such a file",
    ],
)
def test_what_a_start_may_go_on_from_is_no_export(tmp_path: Path, places: dict[str, str]) -> None:
    assert job(tmp_path, **places).exports == ()


def test_data_that_is_there_already_is_loaded_and_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "data.pt").touch()
    after = 'torch.load("data.pt")'
    written = job(tmp_path, load='"last.pt"', save='"last.pt"', other='"best.pt"', after=after)
    assert written.exports == ("best.pt",)
