"""ELASTIC with other interpreters and releases of PyTorch: the harness's own, by name, and those of CHAOS_PYTHONS."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.kit.shipped import SHIPPED
from tests.rehearsal.kit import Chaos

PYTHONS = [sys.executable, *filter(None, os.environ.get("CHAOS_PYTHONS", "").split(os.pathsep))]
"""Interpreters with PyTorch; CHAOS_PYTHONS lists more, as PATH lists directories."""

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_killed_rank_comes_back_with_the_pytorch_of_the_interpreter(
    fresh: Chaos, tmp_path: Path, python: str
) -> None:
    source = (SHIPPED / "torch" / "torch-kill-rank.yaml").read_text()
    path = tmp_path / "kill.yaml"
    shutil.copytree(SHIPPED / "torch" / "jobs", tmp_path / "jobs")
    path.write_text(source.replace("script: jobs/train_ddp.py", f"script: jobs/train_ddp.py\n  python: {python}"))
    done = fresh.run(path)
    assert done.code == 0, done
    starts = done.run.history.select("agent.start", attempt="train")
    assert len(starts) == 8
    assert all(event.data["argv"][0] == python for event in starts)
