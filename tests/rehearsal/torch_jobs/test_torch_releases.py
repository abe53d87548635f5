"""ELASTIC and rehearsals with other interpreters and releases of PyTorch: the harness's, and those of CHAOS_PYTHONS."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from chaos.jobs.torch.interpreter import releases
from chaos.jobs.torch.release import numbers_of
from chaos.jobs.torch.stores import SAME_KEYS
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


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mechanism", ["arf", "uce"])
def test_a_rehearsal_recovers_with_the_pytorch_of_the_interpreter(
    fresh: Chaos, tmp_path: Path, mechanism: str, python: str
) -> None:
    source = (SHIPPED / "torch-rehearsal" / f"torch-rehearsal-{mechanism}.yaml").read_text()
    path = tmp_path / f"{mechanism}.yaml"
    path.write_text(source.replace("  kind: torch-rehearsal\n", f"  kind: torch-rehearsal\n  python: {python}\n"))
    done = fresh.run(path)
    assert done.code == 0, done
    starts = done.run.history.select("agent.start", attempt="train")
    assert {Path(event.data["argv"][0]) for event in starts} == {Path(python)}


@pytest.mark.parametrize("options", ["rendezvous: static", "store: shared"])
@pytest.mark.parametrize("python", PYTHONS[1:])
def test_a_shared_store_keeps_its_promise_of_the_release(
    fresh: Chaos, tmp_path: Path, python: str, options: str
) -> None:
    """The plan refuses it from 2.6 on; before, the new ranks of one node meet."""
    source = (SHIPPED / "torch" / "torch-kill-rank.yaml").read_text()
    path = tmp_path / "kill.yaml"
    shutil.copytree(SHIPPED / "torch" / "jobs", tmp_path / "jobs")
    more = f"\n  python: {python}\n  torchrun: {{{options}}}"
    path.write_text(source.replace("script: jobs/train_ddp.py", f"script: jobs/train_ddp.py{more}"))
    version = numbers_of(releases(Path(python))["torch"])
    done = fresh.run(path)
    assert done.code == (64 if version >= SAME_KEYS else 0), done
