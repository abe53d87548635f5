"""Digests hold what a step came to: the loss, the batch, the gradients that were reduced in it."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

from chaos.agent.digest import tensor_digest
from chaos.agent.digests import Digests, array_digest
from chaos.agent.record import Record
from tests.unit.agent.conftest import Events


class Tensor:
    """What the agent asks of a tensor."""

    def __init__(self, values: Any, dtype: str = "float32") -> None:
        self._array = numpy.asarray(values, dtype)

    def asnumpy(self) -> Any:
        return self._array


def write(digests: Digests, step: int, *, outputs: Any = None, batch: Any = None) -> None:
    digests.write(step, outputs=outputs, batch=batch, parameters=[("w", Tensor([1, 2]))])


def test_gradients_belong_to_the_step_that_reduced_them(record: Record, events: Events) -> None:
    digests = Digests(record, 2)
    gradients = numpy.asarray([3, 4], "float32")
    for step in (1, 2, 4):
        if step < 4:
            digests.gradients = gradients * step
        write(digests, step)
    second, fourth = events("digest")
    assert second.data["gradients"] == {"norm": (10.0).hex(), "digest": array_digest(gradients * 2)}
    # Those of step 1 were dropped with its digest, those of step 2 were used up.
    assert fourth.data["gradients"] is None


@pytest.mark.parametrize(
    ("outputs", "loss"),
    [
        (Tensor(0.5), 0.5),
        (Tensor([0.5]), 0.5),
        ((Tensor(0.25), Tensor(False, "bool")), 0.25),
        (Tensor([1.0, 2.0]), 1.5),
        ((), None),
        (None, None),
        (3.0, 3.0),
        ("a text", None),
    ],
)
def test_the_loss_is_the_first_output(record: Record, events: Events, outputs: Any, loss: float | None) -> None:
    write(Digests(record, 1), 1, outputs=outputs)
    assert events("digest")[0].data["loss"] == (None if loss is None else loss.hex())


def test_a_loss_that_is_no_number_is_recorded_as_such(record: Record, events: Events) -> None:
    write(Digests(record, 1), 1, outputs=Tensor(math.nan))
    assert math.isnan(float.fromhex(events("digest")[0].data["loss"]))


def test_batches_are_told_apart_by_values_and_by_order(record: Record, events: Events) -> None:
    digests = Digests(record, 1)
    image, label = Tensor([1, 2]), Tensor(3, "int32")
    for step, batch in enumerate([[image, label], (image, label), [label, image], [image], image, "text", None], 1):
        write(digests, step, batch=batch)
    found = [event.data["batch"] for event in events("digest")]
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert found[5:] == [None, None]
    assert len(set(found)) == 4


def test_arrays_of_a_batch_count_however_deep_they_stand(record: Record, events: Events) -> None:
    digests = Digests(record, 1)
    image, label = Tensor([1, 2]), Tensor(3, "int32")
    batches = [[image, label], [[image], (label,)], {"a": image, "b": label}, {"b": label, "a": [image]}, {"a": "text"}]
    for step, batch in enumerate(batches, 1):
        write(digests, step, batch=batch)
    *same, none = [event.data["batch"] for event in events("digest")]
    assert len(set(same)) == 1 and same[0] is not None
    assert none is None


def test_a_state_that_changed_since_its_digest_is_named(record: Record) -> None:
    digests = Digests(record, 2)
    assert digests.changed_since(1, [("w", Tensor([1, 2]))]) == []
    for step in (1, 2):
        write(digests, step)
    assert digests.changed_since(1, [("w", Tensor([1, 3]))]) == [], "no digest of step 1"
    assert digests.changed_since(2, [("w", Tensor([1, 2]))]) == []
    assert digests.changed_since(2, [("w", Tensor([1, 3])), ("new", Tensor(1))]) == ["w", "new"]


def test_parameters_have_the_digest_of_the_common_rule(record: Record, events: Events) -> None:
    digests = Digests(record, 1)
    digests.write_initial([("w", Tensor([[1, 2], [3, 4]])), ("step", Tensor(7, "int32"))])
    raw = numpy.asarray([1, 2, 3, 4], "<f4").tobytes()
    assert events("initial")[0].data["parameters"] == {
        "w": tensor_digest("float32", (2, 2), raw),
        "step": tensor_digest("int32", (), b"\x07\0\0\0"),
    }
