"""The seam for jobs without MindSpore: plain arrays, the same events, the same barriers."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests, array_digest
from chaos.agent.record import Record
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events, calls


@pytest.fixture
def training(record: Record) -> Training:
    armed = [{"fault": "kill", "step": 6, "phase": "forward"}]
    return Training(record, Barriers(record, None, armed), Digests(record, 1))


def test_steps_of_plain_arrays_are_recorded_as_those_of_a_framework(training: Training, events: Events) -> None:
    weight, batch = numpy.zeros(3, "float32"), [numpy.arange(4), numpy.ones(1)]
    training.begin(5, [("weight", weight)])
    for step in (6, 7):
        training.step_begin(step)
        training.reach("forward")
        weight += step  # in place: what is recorded is what the arrays hold at the end of each step
        training.step_end(numpy.float32(0.5), batch)
    training.end()
    names = [event.event for event in events() if event.event != "writer.start"]
    first = ["step.begin", "barrier.reached", "barrier.released", "step.end", "digest"]
    second = ["step.begin", "step.end", "digest"]
    assert names == ["train.begin", "initial", *first, *second, "train.end", "agent.cost"]
    assert events("train.begin")[0].data == {"initial_step": 5}
    assert [event.data["parameters"]["weight"] for event in events("digest")] == [
        array_digest(numpy.full(3, total, "float32")) for total in (6, 13)
    ]
    assert [event.data["loss"] for event in events("digest")] == [(0.5).hex()] * 2
    assert events("digest")[0].data["batch"] == events("digest")[1].data["batch"] is not None


def test_what_is_neither_array_nor_tensor_has_no_digest(training: Training, events: Events) -> None:
    training.begin(0, [])
    training.step_begin(1)
    training.step_end(None, [b"raw", 7])
    (digest,) = events("digest")
    assert (digest.data["loss"], digest.data["batch"]) == (None, None)


@pytest.mark.parametrize(
    ("loaded", "recorded"),
    [
        ("job/latest.pt", "job/step-8.pt"),
        ("job/latest/model.pt", "job/iter/8/model.pt"),
        ("job/chain.pt", "job/step-8.pt"),
        ("job/far/step-8.pt", "job/far/step-8.pt"),
        ("job/lost.pt", "job/lost.pt"),
    ],
    ids=["link to a file", "link to a directory", "link to a link", "directory elsewhere", "link to nothing"],
)
def test_a_link_beside_its_checkpoint_is_loaded_under_the_name_of_the_checkpoint(
    training: Training, events: Events, tmp_path: Path, loaded: str, recorded: str
) -> None:
    job = tmp_path / "job"
    for directory in (job / "iter" / "8", tmp_path / "scratch"):
        directory.mkdir(parents=True)
    links = {
        "latest.pt": "step-8.pt",
        "latest": "iter/8",
        "chain.pt": "latest.pt",
        "far": "../scratch",
        "lost.pt": "../gone",
    }
    for name, target in links.items():
        (job / name).symlink_to(target)
    (job / "step-8.pt").touch()
    training.load(str(tmp_path / loaded), dict)
    assert [event.data["path"] for event in events() if event.event in ("load.begin", "load.end")] == [
        str(tmp_path / recorded)
    ] * 2


@pytest.mark.parametrize("loads", [True, False])
def test_a_save_before_the_first_step_has_no_step_where_a_state_was_loaded(
    training: Training, events: Events, tmp_path: Path, loads: bool
) -> None:
    if loads:
        training.load(str(tmp_path / "step-8.pt"), dict)
    with training.saving(str(tmp_path / "x.pt"), end_of_life=False):
        pass
    training.begin(8, [])
    training.step_begin(9)
    with training.saving(str(tmp_path / "y.pt"), end_of_life=False):
        pass
    assert [event.data.get("step") for event in events("checkpoint.end")] == [None if loads else 0, 9]


def test_a_load_is_recorded_round_its_reading(training: Training, events: Events, tmp_path: Path) -> None:
    def read() -> dict[str, int]:
        assert events("load.begin") and not events("load.end")
        return {"weight": 1, "global_step": 5}

    assert training.load(str(tmp_path), read) == {"weight": 1, "global_step": 5}
    assert events("load.end")[0].data == {"path": str(tmp_path), "parameters": 2}


def test_a_step_takes_few_calls_through_the_seam(training: Training) -> None:
    """Recording and barriers of a step must fit into 20 µs, without digests.

    Calls are counted, since microseconds say as much of the machine. One event in JSON more would be 12 calls more.
    """
    training = Training(training._record, training._barriers, Digests(training._record, 0))
    training.begin(0, [])

    def step() -> None:
        training.step_begin(10)
        training.step_end(None, None)

    assert len(calls(step)) <= 25


@pytest.mark.parametrize("fails", [False, True])
def test_the_end_of_a_save_in_the_background_is_recorded_by_its_writer(
    training: Training, events: Events, tmp_path: Path, fails: bool
) -> None:
    """The call has returned long before; the writer is given the file's real path, with its ending."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with training.saving(str(tmp_path / "link" / "net-1_4"), end_of_life=False, step=4, asynchronous=True):
        pass
    assert events("checkpoint.end") and not events("checkpoint.written")
    with contextlib.suppress(OSError), training.writing(str(tmp_path / "real" / "net-1_4.ckpt")):
        if fails:
            raise OSError("no space")
    (written,) = events("checkpoint.written")
    assert written.data == {**events("checkpoint.begin")[0].data, "ok": not fails, "background": False}


def test_that_another_thread_writes_is_recorded(training: Training, events: Events, tmp_path: Path) -> None:
    path = str(tmp_path / "net-1_4.ckpt")
    with training.saving(path, end_of_life=False, step=4, asynchronous=True):
        pass

    def write() -> None:
        with training.writing(path):
            pass

    writer = threading.Thread(target=write)
    writer.start()
    writer.join()
    assert [event.data["background"] for event in events("checkpoint.written")] == [True]


def test_a_file_that_no_start_goes_on_from_is_no_checkpoint(record: Record, events: Events) -> None:
    armed = [{"fault": "kill", "step": 1, "phase": "checkpoint.write"}]
    training = Training(record, Barriers(record, None, armed), Digests(record, 1), exports=["best*.pt"])
    training.begin(0, [])
    training.step_begin(1)
    training.step_end(None, [])

    def save(path: str, *, end_of_life: bool = False) -> None:
        with training.saving(path, end_of_life=end_of_life):
            training.wrote()

    save("out/best-1.pt")
    assert (events("checkpoint.begin"), events("barrier.reached")) == ([], [])
    save("best.pt/last.pt")
    save("out/best.pt", end_of_life=True)
    saved = [Path(event.data["path"]).name for event in events("checkpoint.end")]
    assert (saved, len(events("barrier.reached"))) == (["last.pt", "best.pt"], 1)


def test_a_save_that_training_waits_for_needs_no_other_end(training: Training, events: Events, tmp_path: Path) -> None:
    path = str(tmp_path / "net-1_4.ckpt")
    with training.saving(path, end_of_life=False, step=4), training.writing(path):
        pass
    assert events("checkpoint.end") and not events("checkpoint.written")
