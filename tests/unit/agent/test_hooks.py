"""The hooks record what ``Model.train`` does, step by step over the whole job, and change nothing that it can see."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.hooks import install_hooks
from chaos.agent.record import Record
from chaos.agent.step_source import StepSource
from chaos.agent.training import Training
from tests.unit.agent.conftest import FAKE_JOB, Events, calls

Start = Callable[..., ModuleType]


@pytest.fixture
def start(record: Record, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Set the hooks as in a rank, and import the fake MindSpore's module of that name."""
    monkeypatch.syspath_prepend(str(FAKE_JOB))
    real = {name: module for name, module in sys.modules.items() if _fake(name)}
    for name in real:
        del sys.modules[name]
    imports = AfterImport()
    imports.install()

    def start(name: str = "mindspore.train.model", *, interval: int = 1, armed: tuple[Any, ...] = ()) -> ModuleType:
        barriers = Barriers(record, None, list(armed))
        training = Training(record, barriers, Digests(record, interval))
        install_hooks(imports, record, barriers, training, StepSource(record, training))
        return importlib.import_module(name)

    yield start
    sys.meta_path.remove(imports)
    for name in [name for name in sys.modules if _fake(name)]:
        del sys.modules[name]
    sys.modules.update(real)


def _fake(name: str) -> bool:
    return name.split(".")[0] in ("mindspore", "mindio_ttp")


def batches(count: int) -> list[list[Any]]:
    tensor = sys.modules["mindspore.tensor"].Tensor
    return [[tensor([float(number)]), tensor([1.0])] for number in range(count)]


def steps(events: Events, name: str = "step.end") -> list[int]:
    return [event.data["step"] for event in events(name)]


def test_every_step_is_recorded_once_from_one(start: Start, events: Events) -> None:
    model = start().Model()
    model.train(2, batches(3), callbacks=[])
    assert steps(events, "step.begin") == steps(events, "step.end") == [1, 2, 3, 4, 5, 6]
    assert events("train.begin")[0].data == {"initial_step": 0}
    assert len(events("train.end")) == 1
    (cost,) = events("agent.cost")
    assert cost.data["steps"] == 6
    assert 0 < cost.data["hooks_us_median"] < 1000
    assert cost.data["digest_us_median"] > 0


@pytest.mark.parametrize("place", ["keyword", "position"])
def test_fit_is_observed_as_train_is(start: Start, events: Events, place: str) -> None:
    module, seen = start(), list[str]()
    own = recording(module, seen)
    if place == "keyword":
        module.Model().fit(1, batches(2), callbacks=own)
    else:
        module.Model().fit(1, batches(2), None, 1, [own])
    assert steps(events, "step.begin") == steps(events) == [1, 2]
    assert len(seen) == 2


def test_steps_go_on_where_the_checkpoint_ended(start: Start, events: Events) -> None:
    start().Model(done=5).train(1, batches(3))
    assert events("train.begin")[0].data == {"initial_step": 5}
    assert steps(events) == [6, 7, 8]


@pytest.mark.parametrize("network_has_it", [True, False])
def test_steps_count_from_one_without_an_optimizer_of_its_own(
    start: Start, events: Events, network_has_it: bool
) -> None:
    model = start().Model(done=5)
    if network_has_it:
        model.network.optimizer = model.optimizer
    model.optimizer = None
    model.train(1, batches(2))
    assert steps(events) == ([6, 7] if network_has_it else [1, 2])


@pytest.mark.parametrize("done", [0, 10])
def test_a_step_that_is_replayed_after_a_rollback_keeps_its_number(start: Start, events: Events, done: int) -> None:
    module = start(armed=({"fault": "kill", "step": done + 4, "phase": "step.begin"},))
    replays = iter([5])

    def in_step(step: int) -> None:
        if step == done + 5 and next(replays, None):
            raise module.Rollback(done + 3)

    model = module.Model(done, in_step)
    model.initial_step = done
    model.train(1, batches(done + 6), callbacks=[])
    assert steps(events) == [done + step for step in (1, 2, 3, 4, 5, 4, 5, 6)]
    assert [event.data["initial_step"] for event in events("train.begin")] == [done, done + 3]
    assert len(events("barrier.reached", fault="kill")) == 1


def recording(module: ModuleType, seen: list[str]) -> Any:
    class Own(module.Callback):  # type: ignore[misc, name-defined]
        """The job's own callback."""

        def on_train_step_end(self, run_context: Any) -> None:
            seen.append("own")

    return Own()


@pytest.mark.parametrize("form", ["list", "tuple", "single", "positional list", "positional single", "none", "absent"])
def test_callbacks_reach_mindspores_wrapper_in_the_form_they_came_in(start: Start, events: Events, form: str) -> None:
    """MindSpore's wrapper of ``train`` looks for TrainFaultTolerance in the keyword ``callbacks``, a list or not."""
    module, seen = start(), list[str]()
    own, model = recording(module, seen), module.Model()
    given: dict[str, Any] = {
        "list": [own],
        "tuple": (own,),
        "single": own,
        "positional list": [own],
        "positional single": own,
        "none": None,
    }
    if form.startswith("positional"):
        model.train(1, batches(2), given[form], initial_epoch=0)
    elif form == "absent":
        model.train(1, batches(2), initial_epoch=0)
    else:
        model.train(1, batches(2), callbacks=given[form], initial_epoch=0)
    args, kwargs = model.called_with
    assert len(args) == (3 if form.startswith("positional") else 2)
    callbacks = args[2] if form.startswith("positional") else kwargs["callbacks"]
    assert kwargs["initial_epoch"] == 0
    assert isinstance(callbacks, tuple if form == "tuple" else list)
    assert type(callbacks[0]).__name__ == "ChaosSteps"
    assert list(callbacks[1:]) == ([] if form in ("none", "absent") else [own])
    assert seen == ([] if form in ("none", "absent") else ["own", "own"])
    assert steps(events) == [1, 2]


def test_the_jobs_own_list_of_callbacks_is_not_changed(start: Start) -> None:
    module = start()
    callbacks = [recording(module, [])]
    module.Model().train(1, batches(1), callbacks=callbacks)
    assert len(callbacks) == 1


def test_train_looks_as_before(start: Start) -> None:
    module = start()
    assert module.Model.train.__name__ == "train"
    with pytest.raises(TypeError):
        module.Model().train(1, batches(1), callbacks=[], colour=1)


@pytest.mark.parametrize("phase", ["forward", "step.begin", "step.end"])
def test_phases_outside_the_device_are_barriers(start: Start, events: Events, phase: str) -> None:
    start(armed=({"fault": "kill", "step": 2, "phase": phase},)).Model().train(1, batches(3))
    (reached,) = events("barrier.reached")
    assert (reached.data["step"], reached.data["phase"]) == (2, phase)
    assert steps(events) == [1, 2, 3]


def test_digests_are_of_the_state_after_each_update(start: Start, events: Events) -> None:
    start().Model().train(1, batches(3))
    initial = events("initial")[0].data["parameters"]
    digests = [event.data for event in events("digest")]
    assert [digest["step"] for digest in digests] == [1, 2, 3]
    weights = [initial["weight"], *(digest["parameters"]["weight"] for digest in digests)]
    assert len(set(weights)) == 4
    assert {initial["bias"], *(digest["parameters"]["bias"] for digest in digests)} == {initial["bias"]}
    assert len({digest["batch"] for digest in digests}) == 3
    assert [float.fromhex(digest["loss"]) for digest in digests] == [3.0, 4.0, 5.0]
    assert all(digest["cost_us"] > 0 and digest["gradients"] is None for digest in digests)


def test_digests_can_be_thinned_out(start: Start, events: Events) -> None:
    start(interval=2).Model().train(1, batches(5))
    assert steps(events, "digest") == [2, 4]


def test_digests_can_be_left_out(start: Start, events: Events) -> None:
    start(interval=0).Model().train(1, batches(3))
    assert events("digest") == events("initial") == []
    assert events("agent.cost")[0].data["digest_us_median"] is None


class Slow:
    """What is saved, once it may be."""

    def __init__(self, go: threading.Event) -> None:
        self._go = go

    def get_parameters(self) -> list[Any]:
        self._go.wait(30)
        return []


def test_a_file_that_a_thread_writes_is_recorded_when_it_is_whole(start: Start, events: Events, tmp_path: Path) -> None:
    start()
    serialization = importlib.import_module("mindspore.train.serialization")
    go = threading.Event()
    serialization.save_checkpoint(Slow(go), str(tmp_path / "mnist-1_2.ckpt"), async_save=True)
    assert events("checkpoint.end") and not events("checkpoint.written")
    go.set()
    serialization.wait_for_background()
    (written,) = events("checkpoint.written")
    assert (written.data["ok"], written.data["path"]) == (True, str(tmp_path / "mnist-1_2.ckpt"))


def test_checkpoints_are_recorded_where_they_are_saved(start: Start, events: Events, tmp_path: Path) -> None:
    model_module = start()
    serialization = importlib.import_module("mindspore.train.serialization")
    path = tmp_path / "mnist-1_2.ckpt"

    def save(step: int) -> None:
        if step == 2:
            serialization.save_checkpoint(model.network, str(path), integrated_save=False)

    model = model_module.Model(in_step=save)
    model.train(1, batches(3))
    appended = {"__exception_save__": True, "step_num": 7}
    serialization.save_checkpoint(model.network, str(path), append_dict=appended)
    serialization.save_checkpoint(model.network, str(path), False, False, appended)  # as MindFormers does
    begin, end = events("checkpoint.begin"), events("checkpoint.end")
    assert [event.data for event in begin] == [event.data for event in end]
    assert [(event.data["kind"], event.data["step"], event.data["path"]) for event in begin] == [
        ("periodic", 2, str(path)),
        ("end-of-life", 7, str(path)),
        ("end-of-life", 7, str(path)),
    ]
    names = ["__exception_save__", "step_num"]
    assert [event.data.get("appended") for event in begin] == [None, names, names]
    assert serialization.load_checkpoint(str(path))["bias"] == [0.5]
    assert [event.data for event in events("load.begin")] == [{"path": str(path)}]
    assert [event.data for event in events("load.end")] == [{"path": str(path), "parameters": 4}]


def test_a_save_is_held_in_the_middle_of_its_file(start: Start, events: Events, tmp_path: Path) -> None:
    """Points of an end-of-life save are those of the handler, in whatever step; of a periodic one, of the step."""
    in_handler = [
        {"fault": phase, "step": None, "phase": f"handler.save_ckpt/checkpoint.{phase}"}
        for phase in ("begin", "write", "end")
    ]
    periodic = {"fault": "periodic", "step": 2, "phase": "checkpoint.write"}
    model_module = start(armed=(*in_handler, periodic))
    serialization = importlib.import_module("mindspore.train.serialization")
    model: Any = model_module.Model(
        in_step=lambda step: serialization.save_checkpoint(model.network, str(tmp_path / f"mnist-1_{step}.ckpt"))
    )
    model.train(1, batches(3))
    assert [(event.data["fault"], event.data["step"]) for event in events("barrier.reached")] == [("periodic", 2)]
    appended = {"__exception_save__": True, "step_num": 3}
    serialization.save_checkpoint(model.network, str(tmp_path / "ttp_rank_0-1_3.ckpt"), append_dict=appended)
    entries = [
        event.data.get("fault") or event.event
        for event in events()
        if event.event == "barrier.reached" or event.data.get("kind") == "end-of-life"
    ]
    assert entries == ["periodic", "checkpoint.begin", "begin", "write", "checkpoint.end", "end"]
    serialization.save_checkpoint(model.network, str(tmp_path / "mnist-1_4.ckpt"))
    assert len(events("barrier.reached")) == 4


def test_a_save_that_fails_has_no_end_and_raises_as_before(start: Start, events: Events, tmp_path: Path) -> None:
    serialization = start("mindspore.train.serialization")
    network = importlib.import_module("mindspore.train.model").Network()
    with pytest.raises(FileNotFoundError):
        serialization.save_checkpoint(network, str(tmp_path / "absent" / "x.ckpt"))
    assert len(events("checkpoint.begin")) == 1
    assert events("checkpoint.end") == []


SDK = """
HANDLERS = {}
def tft_register_save_ckpt_handler(function, context): HANDLERS["save_ckpt"] = (function, context)
def tft_register_exit_handler(function, context=None): HANDLERS["exit"] = (function, context)
def tft_register_clean_handler(function, context=None): HANDLERS["clean"] = (function, context)
def tft_start_processor(ip, port, local_ip=""): HANDLERS["started"] = (ip, port)
def tft_destroy_processor(): del HANDLERS["started"]
def tft_end_updating_os(step): return step + 1
"""


@pytest.fixture
def sdk(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that a rank imports as its SDK."""
    package = tmp_path / "mindio_ttp"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "framework_ttp.py").write_text(SDK)
    monkeypatch.syspath_prepend(str(tmp_path))
    return start("mindio_ttp.framework_ttp")


def test_what_protects_a_rank_is_recorded_in_its_order(sdk: Any, events: Events) -> None:
    def save(step: int) -> int:
        return step

    sdk.tft_start_processor("127.0.0.1", 1, local_ip="127.0.0.1")
    sdk.tft_register_save_ckpt_handler(save, None)
    sdk.tft_register_exit_handler(functools.partial(save, 1))
    assert sdk.tft_end_updating_os(7) == 8
    sdk.tft_destroy_processor()
    with pytest.raises(KeyError):
        sdk.tft_destroy_processor()
    known = ("sdk.connected", "sdk.registered", "update.reported", "sdk.disconnected")
    assert [(event.event, event.data) for event in events() if event.event in known] == [
        ("sdk.connected", {}),
        ("sdk.registered", {"name": "save_ckpt", "function": f"{__name__}.{save.__qualname__}"}),
        ("sdk.registered", {"name": "exit", "function": "partial"}),
        ("update.reported", {"step": 7}),
        ("sdk.disconnected", {}),
        ("sdk.disconnected", {}),
    ]


def test_calls_into_handlers_are_recorded_with_how_they_end(sdk: Any, events: Events, tmp_path: Path) -> None:
    file = tmp_path / "mindio_ttp" / "framework_ttp.py"
    assert [event.data for event in events("sdk.imported")] == [{"file": str(file)}]

    def save(step: int, info: dict[str, int], arguments: object, context: str) -> str:
        return f"{step} {info} {context}"

    def leave(context: object) -> None:
        raise SystemExit(1)

    sdk.tft_register_save_ckpt_handler(save, "ctx")
    sdk.tft_register_exit_handler(leave)
    handler, context = sdk.HANDLERS["save_ckpt"]
    assert handler(5, {"a": 1}, None, context) == "5 {'a': 1} ctx"
    handler, context = sdk.HANDLERS["exit"]
    with pytest.raises(SystemExit):
        handler(context)
    answers = {0: True, 2: True, None: True, 1: False}
    for answer in answers:
        sdk.tft_register_clean_handler(lambda *_, answer=answer: answer)
        assert sdk.HANDLERS["clean"][0](True, None, None) == answer
    found = [(event.event, event.data) for event in events() if event.event.startswith("handler")]
    cleaned = [data for event, data in found if event == "handler.exit" and data["name"] == "clean"]
    assert [data["ok"] for data in cleaned] == list(answers.values())
    assert cleaned[-1]["error"] == "it answered 1"
    assert found[:4] == [
        ("handler.enter", {"name": "save_ckpt", "step": 5}),
        ("handler.exit", {"name": "save_ckpt", "ok": True}),
        ("handler.enter", {"name": "exit"}),
        ("handler.exit", {"name": "exit", "ok": False, "error": "1"}),
    ]


def test_a_step_is_recorded_with_few_calls(record: Record) -> None:
    """Two such events and the barriers must fit into 20 µs of a step: no call of the system, no JSON, no lock.

    Calls are counted, since microseconds say as much of the machine. Any other event takes more than twice as many.
    """
    write = record.step_writer("step.end")
    assert len(calls(lambda: write(7))) <= 7
    assert len(calls(lambda: record.write("step.end", step=7))) > 14


@pytest.mark.parametrize("first_collective", [1, 3])
def test_the_new_process_of_a_lost_rank_trains_only_once_it_has_the_state_of_a_replica(
    start: Start, events: Events, monkeypatch: pytest.MonkeyPatch, first_collective: int
) -> None:
    module = start(armed=({"fault": "kill", "step": 1, "phase": "step.begin"},))
    flags = ModuleType("mindspore._c_expression")
    flags.is_reboot_node = lambda: True  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mindspore._c_expression", flags)
    without_any = iter([False] * (first_collective - 1) + [True])

    class FirstCollective(module.Callback):  # type: ignore[misc, name-defined]
        def on_train_step_begin(self, run_context: Any) -> None:
            if next(without_any, False):
                raise module.Rollback(3)

    module.Model().train(1, batches(6), callbacks=[FirstCollective()])
    assert len(events("train.joins")) == len(events("initial")) == 1
    assert [event.data["initial_step"] for event in events("train.begin")] == [3]
    assert steps(events, "step.begin") == steps(events) == [4, 5, 6]
    assert not events("barrier.reached")


def test_what_a_rank_reports_of_itself_is_recorded_before_the_sdk_may_block(
    start: Start, events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "mindio_ttp"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "framework_ttp.py").write_text(
        "from enum import Enum\n"
        "class ReportState(Enum):\n    RS_UNKNOWN = 8\n"
        "def tft_report_error(state, error_code=''): return (state, error_code)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    sdk = start("mindio_ttp.framework_ttp")
    assert sdk.tft_report_error(8, error_code="507054") == (8, "507054")
    try:
        raise ValueError("shapes differ")
    except ValueError:
        sdk.tft_report_error(8)
    said = {"state": 8, "name": "RS_UNKNOWN"}
    error = {"error": "ValueError: shapes differ", "base": "ValueError"}
    assert [event.data for event in events("error.reported")] == [said, {**said, **error}]
