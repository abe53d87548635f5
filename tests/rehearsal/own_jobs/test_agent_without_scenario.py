"""The agent changes nothing: not a job without a scenario, not a process that is no rank, not the job's script."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import chaos
from chaos.rehearsal import jobs
from tests.rehearsal.kit import Done

SITE = Path(chaos.__file__).parent / "agent" / "site"

SCRIPT = """
import sys
import numpy
import mindspore
import mindspore.dataset
from mindspore import nn
from mindspore.train import Callback, Model

class Losses(Callback):
    def on_train_step_end(self, run_context):
        print(float(run_context.original_args().net_outputs.asnumpy()).hex())

mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.set_device("CPU")
mindspore.set_seed(3)
numbers = numpy.random.RandomState(3).rand(8, 4).astype(numpy.float32)
data = mindspore.dataset.NumpySlicesDataset((numbers, numbers[:, :1]), shuffle=False).batch(2)
network = nn.Dense(4, 1)
Model(network, nn.MSELoss(), nn.SGD(network.trainable_params())).train(1, data, [Losses()], dataset_sink_mode=False)
print(sorted(name for name in sys.modules if name.split(".")[0] == "chaos"))
"""


def run(source: str, place: Path, *path: Path, **variables: str) -> str:
    """Run a script with these directories on its PYTHONPATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, path)), **variables}
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def configuration(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration as the harness writes it, and the directory that events would go to."""
    history = tmp_path / "history"
    history.mkdir()
    path = tmp_path / "agent.json"
    extensions = ["chaos.rehearsal.device.device"]
    path.write_text(
        json.dumps({"run": "a-run", "attempt": "train", "history": str(history), "extensions": extensions}), "utf-8"
    )
    return path, history


@pytest.mark.nightly
def test_a_mindspore_script_without_a_scenario_runs_unchanged(tmp_path: Path) -> None:
    plain = run(SCRIPT, tmp_path)
    assert len(plain.splitlines()) == 5 and plain.splitlines()[-1] == "[]"
    before = set(tmp_path.iterdir())
    assert run(SCRIPT, tmp_path, SITE) == plain
    assert run(SCRIPT, tmp_path, SITE, CHAOS_AGENT="") == plain
    assert set(tmp_path.iterdir()) == before


def test_a_process_that_is_no_rank_is_not_recorded(tmp_path: Path, configuration: tuple[Path, Path]) -> None:
    path, history = configuration
    plain = run(SCRIPT, tmp_path)
    with_agent = run(SCRIPT, tmp_path, SITE, CHAOS_AGENT=str(path))
    assert with_agent.splitlines()[:4] == plain.splitlines()[:4]
    assert list(history.iterdir()) == []


@pytest.mark.parametrize("with_scenario", [False, True])
def test_another_sitecustomize_is_still_loaded(
    tmp_path: Path, configuration: tuple[Path, Path], with_scenario: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys\nsys.other = 'loaded'\n", "utf-8")
    variables = {"CHAOS_AGENT": str(configuration[0])} if with_scenario else {}
    source = "import sys, sitecustomize\nprint(sys.other, sitecustomize.__file__)"
    assert run(source, tmp_path, SITE, other, **variables).split() == ["loaded", str(other / "sitecustomize.py")]


def test_the_job_runs_the_script_itself_and_the_script_knows_nothing_of_chaos(passed: Done) -> None:
    script = Path(jobs.__path__[0]) / "mnist.py"
    starts = passed.run.history.select("attempt.start")
    assert [str(script) in start.data["argv"] for start in starts] == [True, True]
    for event in passed.run.history.select("agent.start"):
        assert str(script) in event.data["argv"]
    (begun,) = passed.run.history.select("run.start")
    assert script.stat().st_mtime_ns < begun.wall, "the script was written to since the run began"
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(script.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert "mindspore" in imported and not imported & {"chaos", "mindio_ttp"}
