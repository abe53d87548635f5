"""The lines of ``chaos_steps`` report a training loop of any framework; without a chaos test they do nothing."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests, array_digest
from chaos.agent.lines import Lines, state_of
from chaos.agent.record import Record
from chaos.agent.step_source import StepSource
from chaos.agent.training import Training
from tests.unit.agent.conftest import TREE, Events, calls

FILE = TREE / "agent" / "site" / "chaos_steps.py"


def the_file() -> Any:
    """The file as a job imports it, before the agent has seen it."""
    spec = importlib.util.spec_from_file_location("chaos_steps", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Loop:
    """A loop of one's own with the file, in a rank with an agent."""

    def __init__(self, record: Record, armed: tuple[Any, ...]) -> None:
        self.training = Training(record, Barriers(record, None, list(armed)), Digests(record, 1))
        self.source = StepSource(record, self.training)
        self.steps: Any = the_file()
        Lines(self.training, self.source).connect(self.steps)
        self.weight = numpy.zeros(3, "float32")

    def train(self, first: int, last: int) -> None:
        for step in range(first, last + 1):
            self.steps.step_begins(step, batch=numpy.full(2, step))
            self.steps.reached("forward")
            self.weight += step
            self.steps.reached("optimizer.update")
            self.steps.step_ends(numpy.float32(step / 4))


Make = Callable[..., Loop]


@pytest.fixture
def loop(record: Record) -> Make:
    return lambda *armed: Loop(record, armed)


def unclear(events: Events) -> str:
    (event,) = events("steps.unclear")
    return str(event.data["reason"])


def test_without_an_agent_a_line_costs_a_call(tmp_path: Path) -> None:
    steps = the_file()
    steps.state_is({"weight": object()})
    steps.saved(tmp_path)
    steps.loaded(tmp_path)
    with steps.saving(tmp_path):
        pass

    def step() -> None:
        steps.step_begins(0)
        steps.reached("forward")
        steps.step_ends()

    assert calls(step) == ["step_begins", "reached", "step_ends"]


def test_the_file_alone_is_enough_for_a_script(python: str, tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path)
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, chaos_steps as steps\n"
        "steps.state_is({}); steps.step_begins(1); steps.step_ends(0.5); steps.saved('x', 1)\n"
        "with steps.saving('x'): pass\n"
        "print([name for name in sys.modules if name.startswith('chaos')])\n"
    )
    # -E and -S: neither the environment nor site-packages can help.
    done = subprocess.run([python, "-E", "-S", script], capture_output=True, text=True)
    assert done.stdout.strip() == "['chaos_steps']", done.stderr


@pytest.mark.parametrize("package", ["", "own.parts."])
def test_in_a_rank_the_agent_takes_the_lines_of_the_file_wherever_it_lies(
    python: str, tmp_path: Path, package: str
) -> None:
    history = tmp_path / "history"
    history.mkdir()
    configuration = tmp_path / "agent.json"
    configuration.write_text(json.dumps({"run": "r", "attempt": "train", "history": str(history)}))
    place = tmp_path.joinpath("job", *package.split(".")[:-1])
    place.mkdir(parents=True)
    shutil.copy(FILE, place)
    loop = "for step in 1, 2:\n    step_begins(step)\n    step_ends(0.5)"
    script = f"from {package}chaos_steps import step_begins, step_ends\n{loop}"
    rank = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "0", "MS_WORKER_NUM": "1", "CHAOS_AGENT": str(configuration)}
    path = f"{TREE / 'agent' / 'site'}:{tmp_path / 'job'}"
    done = subprocess.run([python, "-c", script], env={"PYTHONPATH": path, **rank}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = history.iterdir()
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [
        (event["event"], event.get("step")) for event in entries if event["event"].startswith(("step", "train"))
    ] == [
        ("train.begin", None),
        ("step.begin", 1),
        ("step.end", 1),
        ("step.begin", 2),
        ("step.end", 2),
        ("train.end", None),
    ]


def test_steps_losses_batches_and_state_are_recorded_as_those_of_model_train(loop: Make, events: Events) -> None:
    own = loop({"fault": "kill", "step": 6, "phase": "optimizer.update"})
    own.steps.state_is({"weight": own.weight, "lr": 0.5})
    own.train(5, 6)
    own.source.finish()
    names = [event.event for event in events() if event.event != "writer.start"]
    step, held = ["step.begin", "step.end", "digest"], ["barrier.reached", "barrier.released"]
    assert names == [
        "train.begin",
        "initial",
        *step,
        "step.begin",
        *held,
        "step.end",
        "digest",
        "train.end",
        "agent.cost",
    ]
    assert events("train.begin")[0].data == {"initial_step": 4}
    digests = [event.data for event in events("digest")]
    assert [digest["step"] for digest in digests] == [5, 6]
    assert [digest["parameters"]["weight"] for digest in digests] == [
        array_digest(numpy.full(3, total, "float32")) for total in (5, 11)
    ]
    assert [digest["loss"] for digest in digests] == [(step / 4).hex() for step in (5, 6)]
    assert digests[0]["batch"] != digests[1]["batch"] is not None
    assert digests[0]["parameters"]["lr"] == digests[1]["parameters"]["lr"]


def test_a_loss_may_be_a_plain_number(loop: Make, events: Events) -> None:
    own = loop()
    own.steps.step_begins(1)
    own.steps.step_ends(0.25)
    assert events("digest")[0].data["loss"] == (0.25).hex()


def test_a_state_that_each_step_makes_anew_is_read_by_a_function(loop: Make, events: Events) -> None:
    own = loop()
    own.steps.state_is(lambda: {"weight": own.weight})
    for step in (1, 2):
        own.steps.step_begins(step)
        own.weight = own.weight + 1
        own.steps.step_ends()
    assert [event.data["parameters"]["weight"] for event in events("digest")] == [
        array_digest(numpy.full(3, total, "float32")) for total in (1, 2)
    ]


def test_a_job_that_goes_back_begins_anew(loop: Make, events: Events) -> None:
    own = loop()
    own.train(1, 3)
    own.train(2, 3)
    assert [event.data["initial_step"] for event in events("train.begin")] == [0, 1]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (lambda own: own.train(0, 1), "step_begins(0): steps are numbers from 1"),
        (lambda own: own.steps.step_begins("1"), "step_begins('1'): steps are numbers from 1"),
        (lambda own: own.steps.step_ends(), "step_ends() came without step_begins()"),
        (lambda own: own.steps.reached("step.end"), "reached('step.end'): the points between two lines are forward,"),
        (
            lambda own: (own.steps.step_begins(4), own.steps.step_begins(5)),
            "step_begins(5) came before step_ends() of step 4",
        ),
        (
            lambda own: (own.steps.state_is(7), own.steps.step_begins(1)),
            "state_is(): a part has no names and arrays",
        ),
        (lambda own: own.steps._agent("step_is_skipped"), "chaos_steps.py has step_is_skipped(), which this version"),
    ],
)
def test_a_wrong_line_ends_the_counting_and_never_the_job(
    loop: Make, events: Events, lines: Callable[[Loop], Any], reason: str
) -> None:
    own = loop()
    lines(own)
    assert reason in unclear(events)
    begun = len(events("step.begin"))
    own.train(8, 9)
    own.source.finish()
    assert len(events("step.begin")) == begun
    assert not events("train.end")


def test_a_line_within_model_train_counts_no_step_twice(loop: Make, events: Events) -> None:
    own = loop()
    with own.source.model_train():
        own.train(1, 2)
    assert not events("step.begin")
    own.train(3, 3)
    assert [event.data["step"] for event in events("step.begin")] == [3]


def test_the_file_takes_the_place_of_hooks_as_soon_as_it_is_imported(loop: Make) -> None:
    assert loop().source.lines


def test_saves_and_loads_are_recorded_once(loop: Make, events: Events, tmp_path: Path) -> None:
    own = loop({"fault": "kill", "step": 3, "phase": "checkpoint.begin"})
    own.steps.loaded(tmp_path / "old.npz", step=2)
    own.train(3, 3)
    with own.steps.saving(tmp_path / "a.ckpt"), own.training.saving(str(tmp_path / "a"), end_of_life=False):
        pass  # the second is MindSpore's, of the same file
    with own.training.saving(str(tmp_path / "b"), end_of_life=False):
        pass
    own.steps.saved(tmp_path / "b.ckpt")
    own.steps.saved(tmp_path / "c.npz", step=1)
    ended = [(Path(event.data["path"]).name, event.data["step"]) for event in events("checkpoint.end")]
    assert ended == [("a.ckpt", 3), ("b", 3), ("c.npz", 1)]
    assert len(events("checkpoint.begin")) == 3
    assert [event.data["phase"] for event in events("barrier.reached")] == ["checkpoint.begin"]
    assert [Path(event.data["path"]).name for event in events("load.end")] == ["old.npz"]
    assert own.training.loaded_step == 2


def test_a_load_that_the_framework_has_recorded_is_not_recorded_again(
    loop: Make, events: Events, tmp_path: Path
) -> None:
    own = loop()
    own.training.load(str(tmp_path / "a.ckpt"), dict)
    own.steps.loaded(tmp_path / "a.ckpt", step=4)
    assert len(events("load.end")) == 1
    assert own.training.loaded_step == 4


class Network:
    """A network as frameworks have them: it can be called, and names its tensors."""

    def __init__(self, reader: str, tensors: dict[str, Any]) -> None:
        setattr(self, reader, lambda: tensors)

    def __call__(self) -> None:
        raise AssertionError("state_is() has called the network")


class Tensor:
    """A tensor of PyTorch, as far as it is looked at."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.dtype = "torch.float32"

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.values


def test_the_state_of_several_parts_has_every_array_once() -> None:
    shared, moments, other = numpy.ones(1), numpy.zeros(1), numpy.zeros(2)
    network = Network("parameters_dict", {"weight": shared})
    optimizer = Network("parameters_dict", {"weight": shared, "moments.weight": moments})
    torch = Network("state_dict", {"state": {0: {"exp_avg": moments, "step": 3}}, "groups": [{"lr": 0.1, "x": None}]})
    state = list(state_of((network, optimizer, torch, [("weight", other)])))
    assert state == [
        ("weight", shared),
        ("moments.weight", moments),
        ("state.0.exp_avg", moments),
        ("state.0.step", 3),
        ("groups.0.lr", 0.1),
        ("3.weight", other),
    ]


def test_a_network_of_mindspore_has_the_names_that_a_checkpoint_has() -> None:
    """Its state_dict names parameters by their place, which differs for a table of learning rates."""
    table = numpy.ones(3)
    optimizer = Network("parameters_dict", {"learning_rate": table})
    optimizer.state_dict = lambda: {"learning_rate.learning_rate": table}  # type: ignore[attr-defined]
    assert list(state_of((optimizer,))) == [("learning_rate", table)]


def test_a_tensor_of_another_framework_has_the_digest_of_its_array(loop: Make, events: Events) -> None:
    own = loop()
    own.steps.state_is(Network("state_dict", {"weight": Tensor(own.weight)}))
    own.steps.step_begins(1)
    own.steps.step_ends(Tensor(numpy.float32(0.5)))
    (digest,) = events("digest")
    assert digest.data["parameters"] == {"weight": array_digest(own.weight)}
    assert digest.data["loss"] == (0.5).hex()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda own: None, {"model_train": False, "lines": True, "gradients": False}),
        (lambda own: own.source.model_train().__enter__(), {"model_train": True, "lines": True, "gradients": False}),
    ],
)
def test_a_process_that_ends_without_a_step_says_so(
    loop: Make, events: Events, how: Callable[[Loop], Any], said: dict[str, bool]
) -> None:
    own = loop()
    how(own)
    own.source.finish()
    assert [event.data for event in events("steps.none")] == [said]


def test_a_process_that_an_exception_ends_says_nothing_of_steps(
    loop: Make, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = loop()
    monkeypatch.setattr(sys, "last_type", ValueError, raising=False)
    own.source.finish()
    own.train(1, 1)
    own.source.finish()
    assert not events("steps.none") and not events("train.end")


def test_a_step_that_has_not_ended_is_no_end_of_a_training(loop: Make, events: Events) -> None:
    own = loop()
    own.train(1, 1)
    own.steps.step_begins(2)
    own.source.finish()
    assert not events("train.end")


def test_the_file_is_a_module_with_documented_functions() -> None:
    module: ModuleType = the_file()
    names = [name for name, value in vars(module).items() if callable(value) and value.__module__ == "chaos_steps"]
    assert names == ["state_is", "step_begins", "step_ends", "reached", "saved", "saving", "loaded"]
    assert all(getattr(module, name).__doc__ for name in names)
