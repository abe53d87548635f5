"""A job of PyTorch with the habits of public examples goes from ``chaos init`` to *pass*, without a change of it."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from chaos.scenario.load import load_scenario
from tests.rehearsal.kit import Chaos, Done, checks_of

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed here"),
]

SCRIPTS = Path(__file__).parent / "torch_habits"


def run(fresh: Chaos, directory: Path, launch: str, *change: str, name: str = "fit") -> Done:
    script = directory / f"{name}.py"
    shutil.copy(SCRIPTS / script.name, script)
    if change:
        before, after = change
        source = script.read_text()
        assert source.count(before) == 1
        script.write_text(source.replace(before, after))
    assert fresh("init", directory, "--launch", launch).code == 0
    return fresh.run(directory / f"{name}-kill.yaml")


@pytest.mark.parametrize("options", ["", "--max-restarts 2 "])
def test_epochs_a_snapshot_and_no_seed_are_no_obstacle(fresh: Chaos, tmp_path: Path, options: str) -> None:
    done = run(fresh, tmp_path, f"torchrun --nproc-per-node 2 {options}fit.py 4 1")
    assert done.code == 0, done
    scenario = load_scenario(tmp_path / "fit-kill.yaml").cells[0].scenario
    assert (scenario.job.steps, scenario.job.checkpoint_interval, scenario.job.seed_at_start) == (32, 8, True)
    assert done.run.history.first("load.end") is not None


def test_the_epoch_of_the_snapshot_must_not_be_trained_again(fresh: Chaos, tmp_path: Path) -> None:
    """So do well-known examples: they save the number of the epoch that has ended, and begin with it again."""
    launch = "torchrun --nproc-per-node 2 fit.py 4 1"
    done = run(fresh, tmp_path, launch, '"EPOCHS": epochs}', '"EPOCHS": epochs - 1}')
    assert done.code == 1, done
    assert "trained another batch" in str(done.run.result["checks"])


TRIED_AGAIN = """        try:
            self.optimizer.step(None if self.first_epoch or hasattr(self, "failed") else lambda: 1 / 0)
        except ZeroDivisionError:
            self.failed = True
            return self.batch(inputs, targets)
"""


def test_an_update_that_is_tried_again_after_an_error_is_no_obstacle(fresh: Chaos, tmp_path: Path) -> None:
    launch = "torchrun --nproc-per-node 2 fit.py 4 1"
    done = run(fresh, tmp_path, launch, "        self.optimizer.step()\n", TRIED_AGAIN)
    assert done.code == 0, done
    assert {event.data["step"] for event in done.run.history.select("step.end", rank=0)} == set(range(1, 33))


@pytest.mark.parametrize("options", ["", " --fused"])
@pytest.mark.parametrize("restarts", ["", "--max-restarts 2 "])
def test_updates_that_mixed_precision_leaves_out_are_no_obstacle(
    fresh: Chaos, tmp_path: Path, restarts: str, options: str
) -> None:
    launch = f"torchrun --nproc-per-node 2 {restarts}mixed.py --steps 12{options}"
    done = run(fresh, tmp_path, launch, name="mixed")
    assert done.code == 0, done
    history = done.run.history
    left_out = {event.data["step"] for event in history.select("update.left_out", attempt="train")}
    (save, *_) = (event for event in history.select("checkpoint.end") if event.data["step"] == 4)
    assert 0 < save.data["left_out"] == len([step for step in left_out if step <= 4]) < 4


def test_a_scaler_that_is_not_restored_is_found(fresh: Chaos, tmp_path: Path) -> None:
    launch = "torchrun --nproc-per-node 2 mixed.py --steps 12"
    done = run(fresh, tmp_path, launch, 'scaler.load_state_dict(saved["scaler"])', "pass", name="mixed")
    assert done.code == 1, done


with_safetensors = pytest.mark.skipif(
    importlib.util.find_spec("safetensors") is None, reason="safetensors is not installed here"
)


@with_safetensors
@pytest.mark.parametrize("restarts", ["", "--max-restarts 2 "])
def test_a_checkpoint_of_several_files_and_a_handler_of_sigterm_are_no_obstacle(
    fresh: Chaos, tmp_path: Path, restarts: str
) -> None:
    done = run(fresh, tmp_path, f"torchrun --nproc-per-node 2 {restarts}spread.py --steps 12", name="spread")
    assert done.code == 0, done
    loads = {Path(str(event.data["path"])).name for event in done.run.history.select("load.end", rank=1)}
    assert loads == {"model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state_1.pth"}


@with_safetensors
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (("torch.set_rng_state(torch.load(", "print(torch.load("), "loss"),
        (("optimizer.load_state_dict(torch.load(", "print(torch.load("), "loss"),
        (("model.load_state_dict(load_file(", "print(load_file("), "resume"),
        (("save_file(model.state_dict(), ", "save_file(dict(list(model.state_dict().items())[:2]), "), "checkpoint"),
    ],
)
def test_a_part_that_is_not_restored_or_not_saved_is_found(
    fresh: Chaos, tmp_path: Path, change: tuple[str, str], check: str
) -> None:
    done = run(fresh, tmp_path, "torchrun --nproc-per-node 2 spread.py --steps 12", *change, name="spread")
    assert done.code == 1, done
    assert check in {entry["name"] for entry in done.run.result["checks"] if entry["verdict"] == "fail"}


@pytest.mark.parametrize("compiled", ["model", "within", "place", "update"])
def test_a_compiled_model_or_update_is_no_obstacle(fresh: Chaos, tmp_path: Path, compiled: str) -> None:
    launch = f"torchrun --nproc-per-node 2 compiled.py --steps 12 --compiled {compiled}"
    done = run(fresh, tmp_path, launch, name="compiled")
    assert done.code == 0, done


def test_steps_within_a_compiled_function_are_unknown_and_the_reason_is_printed(fresh: Chaos, tmp_path: Path) -> None:
    launch = "torchrun --nproc-per-node 2 compiled.py --steps 12 --compiled function"
    done = run(fresh, tmp_path, launch, name="compiled")
    assert done.code == 2, done
    assert "Compile the model in its place" in done.output


@pytest.mark.parametrize("restarts", ["", "--max-restarts 2 "])
def test_weights_of_the_best_step_are_no_obstacle(fresh: Chaos, tmp_path: Path, restarts: str) -> None:
    best = '    update()\n    if rank == 0 and step % 3 == 0:\n        torch.save(model.state_dict(), "best.pt")\n'
    launch = f"torchrun --nproc-per-node 2 {restarts}compiled.py --steps 12"
    done = run(fresh, tmp_path, launch, "    update()\n", best, name="compiled")
    assert done.code == 0, done
    job = load_scenario(tmp_path / "compiled-kill.yaml").cells[0].scenario.job
    assert (job.exports, job.checkpoint_interval) == (("best.pt",), 4)


@pytest.mark.parametrize(("restarts", "options"), [("", ""), ("", " --momentum 0.9"), ("--max-restarts 2 ", "")])
def test_a_second_network_is_no_obstacle(fresh: Chaos, tmp_path: Path, restarts: str, options: str) -> None:
    done = run(fresh, tmp_path, f"torchrun --nproc-per-node 2 {restarts}gan.py --steps 12{options}", name="gan")
    assert done.code == 0, done
    assert load_scenario(tmp_path / "gan-kill.yaml").cells[0].scenario.job.step_optimizer == 2
    (initial, *_) = done.run.history.select("initial", attempt="train", rank=0)
    assert {"net.0.weight", "network2.net.0.weight", "network2.net.1.running_mean"} <= initial.data["parameters"].keys()


LOAD = 'judge.load_state_dict(saved["judge"])'
BUGS_OF_THE_SECOND = {
    "lost": (LOAD, "pass", "resume", "network2.net.0.weight"),
    "mean lost": (
        LOAD,
        LOAD.replace('saved["judge"]', '{**saved["judge"], "net.1.running_mean": torch.ones(16)}'),
        "resume",
        "network2.net.1.running_mean",
    ),
    "wrong in the file": (
        '{"judge": judge.state_dict(),',
        '{"judge": {**judge.state_dict(), "net.3.bias": torch.ones(1)},',
        "checkpoint",
        "network2.net.3.bias",
    ),
}


@pytest.mark.parametrize("restarts", ["", "--max-restarts 2 "])
@pytest.mark.parametrize("bug", BUGS_OF_THE_SECOND)
def test_a_second_network_that_does_not_come_back_fails_though_its_optimizer_keeps_nothing(
    fresh: Chaos, tmp_path: Path, bug: str, restarts: str
) -> None:
    before, after, check, name = BUGS_OF_THE_SECOND[bug]
    launch = f"torchrun --nproc-per-node 2 {restarts}gan.py --steps 12"
    done = run(fresh, tmp_path, launch, before, after, name="gan")
    assert done.code == 1, done
    assert any(name in said["seen"] for said in checks_of(done.run.result, "fail") if said["name"] == check)
