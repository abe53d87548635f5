"""The agent comes in by a .pth file in the ranks' Python, whatever becomes of PYTHONPATH on the way."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chaos.history.reader import read_history
from tests.unit.agent.conftest import TREE

SITE = TREE / "agent" / "site"
RANK = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "MS_WORKER_NUM": "1"}
SHOW = "import json, sys; print(json.dumps([sys.path, [n for n in sys.modules if n.split('.')[0] == 'chaos']]))"


class Ranks:
    """A Python with the .pth file among its packages, as a user installs it."""

    def __init__(self, place: Path, python: str) -> None:
        subprocess.run([python, "-m", "venv", "--without-pip", str(place / "venv")], check=True)
        self.python = str(place / "venv" / "bin" / "python")
        asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(subprocess.check_output([self.python, "-c", asked], text=True).strip())
        (self.packages / "chaos-agent.pth").write_bytes((TREE / "agent" / "chaos-agent.pth").read_bytes())
        (place / "history").mkdir()
        self._configuration = place / "agent.json"
        fields = {"run": "r", "attempt": "train", "history": str(place / "history")}
        self._configuration.write_text(json.dumps(fields), "utf-8")

    def told(self) -> dict[str, str]:
        """What a launch adds to the environment, without PYTHONPATH."""
        return {**RANK, "CHAOS_AGENT": str(self._configuration), "CHAOS_AGENT_SITE": str(SITE)}

    def run(self, code: str, *options: str, **environment: str) -> str:
        done = subprocess.run(
            [self.python, *options, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return done.stdout

    def starts(self) -> list[Any]:
        """How often the agent has started."""
        return read_history(self._configuration.parent / "history").select("agent.start")


@pytest.fixture
def ranks(tmp_path: Path, python: str) -> Ranks:
    return Ranks(tmp_path, python)


@pytest.mark.parametrize("options", [(), ("-E",), ("-I",)], ids=["", "without Python's variables", "isolated"])
def test_it_comes_in_where_pythonpath_is_lost(ranks: Ranks, options: tuple[str, ...]) -> None:
    path, modules = json.loads(ranks.run(SHOW, *options, **ranks.told()))
    assert "chaos.agent.start" in modules
    assert str(TREE.parent) not in path
    assert len(ranks.starts()) == 1


def test_it_comes_in_before_a_sitecustomize_that_a_script_has_put_first(ranks: Ranks, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.own = __file__\n", "utf-8")
    first = os.pathsep.join((str(own), str(SITE)))
    printed = ranks.run("import sys; print(sys.own)", PYTHONPATH=first, **ranks.told())
    assert printed.strip() == str(own / "sitecustomize.py")
    assert len(ranks.starts()) == 1


def test_it_comes_in_once_where_pythonpath_is_kept(ranks: Ranks) -> None:
    ranks.run("", PYTHONPATH=str(SITE), **ranks.told())
    assert len(ranks.starts()) == 1


def test_without_a_run_the_file_changes_nothing(ranks: Ranks) -> None:
    with_file = ranks.run(SHOW)
    (ranks.packages / "chaos-agent.pth").unlink()
    assert with_file == ranks.run(SHOW)
