"""A process that a rank has started is no new process of the rank, though it has the rank's environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.agent.launcher.rank_helpers import is_helper

ASK = "import sys; from chaos.agent.launcher.rank_helpers import is_helper; print(is_helper(sys.argv[1], 'train', 3))"


def asked_below(history: Path) -> str:
    """Ask in a process two levels below this one."""
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ASK!r}, sys.argv[1]], check=True)"
    done = subprocess.run([sys.executable, "-c", below, history], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_process_below_one_with_a_record_of_the_rank_is_its_helper(tmp_path: Path) -> None:
    assert asked_below(tmp_path) == "False"
    (tmp_path / f"train-rank_3-{os.getpid()}.jsonl").write_text("")
    assert asked_below(tmp_path) == "True"


def test_the_ranks_own_process_is_none(tmp_path: Path) -> None:
    (tmp_path / f"train-rank_3-{os.getpid()}.jsonl").write_text("")
    assert not is_helper(str(tmp_path), "train", 3)


@pytest.mark.parametrize("name", ["train-rank_2", "resume-rank_3", "train-launcher"])
def test_the_record_of_another_rank_or_launch_or_of_the_launcher_makes_no_helper(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}-{os.getppid()}.jsonl").write_text("")
    assert not is_helper(str(tmp_path), "train", 3)
    (tmp_path / f"train-rank_3-{os.getppid()}.jsonl").write_text("")
    assert is_helper(str(tmp_path), "train", 3)
