"""Plain ranks in pipeline stages: each holds its layer alone, and together they train what one rank trains."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import numpy
import pytest

from chaos.rehearsal.plain.data import Batches
from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.network import dropout
from chaos.rehearsal.plain.pipeline import computed
from chaos.rehearsal.plain.state import State

STEPS = 6


def test_ranks_are_a_matrix_of_stage_by_data_by_model() -> None:
    mesh = Mesh(5, 8, 2, 2)
    assert (mesh.stage, mesh.data, mesh.model) == (1, 0, 1)
    assert mesh.model_group == (4, 5)
    assert mesh.groups == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert mesh.replicas == (5, 7)
    assert (mesh.first_stage, mesh.last_stage) == (False, True)
    assert (mesh.before, Mesh(1, 8, 2, 2).behind) == (1, 5)


class Wire:
    """The connections of a few ranks in threads: what one sends, only the other has."""

    def __init__(self, ranks: int) -> None:
        self._queues: dict[tuple[int, int], SimpleQueue[Any]] = {
            (one, other): SimpleQueue() for one in range(ranks) for other in range(ranks)
        }

    def device(self, rank: int) -> Any:
        return Device(rank, self._queues)


class Device:
    def __init__(self, rank: int, queues: dict[tuple[int, int], SimpleQueue[Any]]) -> None:
        self._rank = rank
        self._queues = queues

    def send(self, other: int, array: Any) -> None:
        self._queues[self._rank, other].put(array.copy())

    def receive(self, other: int, like: Any) -> Any:
        found = self._queues[other, self._rank].get(timeout=60)
        assert (found.shape, found.dtype) == (like.shape, like.dtype)
        return found

    def reduce(self, part: Any, members: tuple[int, ...]) -> Any:
        for other in members:
            self.send(other, part)
        total = None
        for other in members:
            given = self.receive(other, part)
            total = given if total is None else total + given
        return total


def trained(ranks: int, slices: int, stages: int) -> tuple[list[State], list[list[Any]]]:
    """States and losses of ranks that share one batch in every step."""
    wire, states = Wire(ranks), [State(1, Mesh(rank, ranks, slices, stages), flagged=False) for rank in range(ranks)]
    losses: list[list[Any]] = [[] for _ in range(ranks)]

    def train(rank: int) -> None:
        mesh, state, data = (
            Mesh(rank, ranks, slices, stages),
            states[rank],
            Batches(seed=1, size=4, per_epoch=3, part=0),
        )
        for position in range(STEPS):
            mask = dropout(state.parameters["random_state"], mesh)
            batch = data.batch(position)
            loss, found = computed(wire.device(rank), mesh, state.parameters, batch, mask, lambda values: values)
            state.update(found)
            losses[rank].append(loss)

    threads = [threading.Thread(target=train, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert {len(found) for found in losses} == {STEPS}
    return states, losses


@pytest.mark.parametrize("slices", [1, 2])
def test_stages_train_bit_for_bit_what_ranks_with_all_layers_train(slices: int) -> None:
    whole, losses = trained(slices, slices, 1)
    staged, losses_of_stages = trained(2 * slices, slices, 2)
    for slice_ in range(slices):
        first, last, both = staged[slice_].parameters, staged[slices + slice_].parameters, whole[slice_].parameters
        assert not any(name.startswith("layer2") for name in first)
        assert not any(name.startswith("layer1") for name in last)
        assert both.keys() == first.keys() | last.keys()
        for name, value in both.items():
            for parameters in (first, last):
                assert name not in parameters or numpy.array_equal(parameters[name], value), name
        assert losses_of_stages[slices + slice_] == losses[slice_]
        assert losses_of_stages[slice_] == [None] * STEPS
