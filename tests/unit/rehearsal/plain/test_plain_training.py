"""What plain ranks compute: the same bits from the same seed, on one rank or with slices, and it learns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy
import pytest

from chaos.rehearsal.plain import machine
from chaos.rehearsal.plain.checkpoints import Checkpoints
from chaos.rehearsal.plain.data import Batches
from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.network import HIDDEN, dropout, gradients
from chaos.rehearsal.plain.state import FLAG, State

ALONE = Mesh(0, 1)


def test_ranks_are_a_matrix_of_data_by_model() -> None:
    mesh = Mesh(5, 8, 2)
    assert (mesh.data, mesh.model) == (2, 1)
    assert mesh.model_group == (4, 5)
    assert mesh.groups == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert mesh.replicas == (1, 3, 5, 7)


def batches(part: int = 0, seed: int = 1) -> Batches:
    return Batches(seed=seed, size=4, per_epoch=3, part=part)


def same(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    return all((a == b).all() for a, b in zip(one, other, strict=True))


def test_a_batch_follows_from_seed_position_and_part_alone() -> None:
    forward = [batches().batch(position) for position in range(6)]
    again = batches()
    assert all(same(forward[position], again.batch(position)) for position in reversed(range(6)))
    assert not same(forward[0], batches(part=1).batch(0))
    assert not same(forward[0], batches(seed=2).batch(0))


def test_every_epoch_has_the_same_batches_in_an_order_of_its_own() -> None:
    data = Batches(seed=1, size=2, per_epoch=20, part=0)
    epochs = [[data.batch(epoch * 20 + place)[0].tobytes() for place in range(20)] for epoch in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]


def train(state: State, steps: int) -> list[float]:
    losses = []
    for position in range(steps):
        mask = dropout(state.parameters["random_state"], ALONE)
        loss, found = gradients(state.parameters, batches().batch(position % 3), mask, lambda part: part)
        state.update(found)
        losses.append(float(loss))
    return losses


def test_it_learns_and_every_parameter_moves_and_stays_what_it_is() -> None:
    state, before = State(1, ALONE, flagged=False), State(1, ALONE, flagged=False)
    losses = train(state, 60)
    assert sum(losses[-5:]) < sum(losses[:5]) / 4
    for name, parameter in state.parameters.items():
        assert (parameter != before.parameters[name]).any(), name
        assert parameter.dtype == before.parameters[name].dtype
        assert numpy.isfinite(parameter).all()
    assert state.steps == 60


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not() -> None:
    state, other, third = (State(seed, ALONE, flagged=True) for seed in (1, 1, 2))
    assert train(state, 5) == train(other, 5) != train(third, 5)
    assert all((state.parameters[name] == other.parameters[name]).all() for name in state.parameters)


def test_gradients_are_those_of_the_loss() -> None:
    """Compared with differences of the loss, at some places of every weight."""
    state = State(3, ALONE, flagged=False)
    weights = {name: value.astype("float64") for name, value in state.parameters.items() if name.startswith("layer")}
    pictures, labels = batches().batch(0)
    batch, mask = (pictures.astype("float64"), labels), numpy.ones(HIDDEN)

    def loss() -> float:
        # The loss is of 32 bits, so the step is wide.
        return float(gradients(weights, batch, mask, lambda part: part)[0])

    _, found = gradients(weights, batch, mask, lambda part: part)
    for name, weight in weights.items():
        place = numpy.unravel_index(int(numpy.abs(found[name]).argmax()), weight.shape)
        kept, width = weight[place], 2e-3
        weight[place] = kept + width
        above = loss()
        weight[place] = kept - width
        below = loss()
        weight[place] = kept
        assert (above - below) / (2 * width) == pytest.approx(float(found[name][place]), rel=0.05), name


@pytest.mark.parametrize("slices", [2, 4])
def test_slices_together_are_the_whole_network(slices: int) -> None:
    whole = State(1, ALONE, flagged=False).parameters
    parts = [State(1, Mesh(rank, slices, slices), flagged=False).parameters for rank in range(slices)]
    assert (numpy.concatenate([part["layer1.weight"] for part in parts], axis=1) == whole["layer1.weight"]).all()
    assert (numpy.concatenate([part["layer2.weight"] for part in parts]) == whole["layer2.weight"]).all()
    batch = batches().batch(0)
    meshes = [Mesh(rank, slices, slices) for rank in range(slices)]
    given: list[Any] = []

    def give(part: Any) -> Any:
        given.append(part)
        return part

    for part, mesh in zip(parts, meshes, strict=True):
        gradients(part, batch, dropout(part["random_state"], mesh), give)
    total = sum(given[1:], start=given[0])
    loss, _ = gradients(whole, batch, dropout(whole["random_state"], ALONE), lambda part: part)
    sliced, _ = gradients(parts[0], batch, dropout(parts[0]["random_state"], meshes[0]), lambda part: total)
    assert float(sliced) == pytest.approx(float(loss), rel=1e-6)


class Device:
    """The storage, and the agent's part in a save and a load."""

    def __init__(self) -> None:
        self.saved: list[tuple[str, bool, int]] = []
        self.training = self

    def create(self, path: str) -> Any:
        return Path(path).open("wb", buffering=0)

    def open(self, path: str) -> Any:
        return Path(path).open("rb")

    def saving(self, path: str, *, end_of_life: bool, step: int, appended: Iterable[str]) -> Any:
        self.saved.append((path.rpartition("checkpoints/")[2], end_of_life, step))
        return contextlib.nullcontext()

    def wrote(self) -> None: ...

    def load(self, path: str, read: Any) -> Any:
        return read()


def checkpoints(tmp_path: Path, state: State, mesh: Mesh, device: Device, interval: int = 0) -> Checkpoints:
    output = str(tmp_path / "checkpoints")
    return Checkpoints(output, state, mesh, device, per_epoch=3, interval=interval, steps=5)  # type: ignore[arg-type]


def test_an_end_of_life_checkpoint_brings_everything_back(tmp_path: Path) -> None:
    state, device = State(1, ALONE, flagged=True), Device()
    train(state, 4)
    own = checkpoints(tmp_path, state, ALONE, device)
    own.save_end_of_life(4)
    other = State(9, ALONE, flagged=True)
    with pytest.raises(FileNotFoundError, match="no finished end-of-life checkpoint"):
        checkpoints(tmp_path, other, ALONE, device).load_end_of_life()
    own.rename(4)
    assert checkpoints(tmp_path, other, ALONE, device).load_end_of_life() == 4
    assert all((state.parameters[name] == other.parameters[name]).all() for name in state.parameters)
    assert device.saved == [("ttp_saved_checkpoints-step_4_tmp/rank_0/ttp_rank_0-2_1.ckpt", True, 4)]


def test_the_middle_of_an_update_is_not_saved(tmp_path: Path) -> None:
    state = State(1, ALONE, flagged=True)
    state.parameters[FLAG][...] = 4
    with pytest.raises(RuntimeError, match="inconsistent state"):
        checkpoints(tmp_path, state, ALONE, Device()).save_end_of_life(1)


def test_periodic_checkpoints_are_saved_when_due_and_at_the_end(tmp_path: Path) -> None:
    state, device = State(1, ALONE, flagged=False), Device()
    own = checkpoints(tmp_path, state, ALONE, device, interval=2)
    for _ in range(5):
        train(state, 1)
        own.save_if_due()
    assert device.saved == [
        (f"rank_0/plain-{name}.ckpt", False, step) for name, step in (("1_2", 2), ("2_1", 4), ("2_2", 5))
    ]
    other = State(9, ALONE, flagged=False)
    assert checkpoints(tmp_path, other, ALONE, device).load_newest_periodic() == 5


def test_only_a_step_that_every_replica_group_has_is_gone_on_from(tmp_path: Path) -> None:
    meshes = [Mesh(rank, 4, 2) for rank in range(4)]
    for rank, steps in ((0, 4), (1, 2), (2, 2), (3, 2)):
        state = State(1, meshes[rank], flagged=False)
        own = checkpoints(tmp_path, state, meshes[rank], Device(), interval=2)
        for _ in range(steps):
            state.parameters["global_step"] += 1
            own.save_if_due()
    for mesh in meshes:
        assert checkpoints(tmp_path, State(1, mesh, flagged=False), mesh, Device()).load_newest_periodic() == 2


def test_a_checkpoint_of_another_shape_is_refused() -> None:
    state = State(1, Mesh(0, 2, 2), flagged=False)
    with pytest.raises(ValueError, match=r"layer1\.weight of the checkpoint has shape"):
        state.load(State(1, ALONE, flagged=False).parameters)


def test_without_a_device_layer_the_job_says_how_to_start_it() -> None:
    with pytest.raises(RuntimeError, match="chaos run"):
        machine.device()
