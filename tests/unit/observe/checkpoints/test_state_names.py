"""A value of a file of PyTorch has the name that its rank has for it, under whatever keys the script keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.observe.checkpoints.checkpoint import read_checkpoint
from chaos.observe.checkpoints.torch.flatten import flatten
from chaos.observe.checkpoints.torch.objects import StorageRef, TensorRef
from chaos.observe.checkpoints.torch.state_names import named_as_in_rank
from tests.kit.checkpoints.torch_save import TorchSave, floats


def tensor() -> TensorRef:
    return TensorRef(StorageRef("0", "float32", 4), "float32", 0, (4,), (1,))


def adam() -> dict[str, Any]:
    state = {number: {"exp_avg": tensor(), "step": tensor()} for number in (0, 1)}
    return {"state": state, "param_groups": [{"lr": 0.1, "params": [0, 1]}]}


def names(structure: Any) -> set[str]:
    return {name for name in named_as_in_rank(structure, flatten(structure)) if "param_groups" not in name}


SLOTS = {f"optimizer.{key}.{number}" for key in ("exp_avg", "step") for number in (0, 1)}
WEIGHTS = {"net.0.weight", "net.0.bias"}


def model(prefix: str = "") -> dict[str, Any]:
    return {f"{prefix}net.0.weight": tensor(), f"{prefix}net.0.bias": tensor()}


@pytest.mark.parametrize("key", ["model", "state_dict", "module", "anything"])
@pytest.mark.parametrize("optimizer", ["optimizer", "optim", "opt_state"])
def test_the_keys_of_the_script_do_not_matter(key: str, optimizer: str) -> None:
    assert names({key: model(), optimizer: adam(), "step": 4}) == WEIGHTS | SLOTS | {"step"}


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_the_prefixes_of_wrappers_are_left_out(prefix: str) -> None:
    assert names({"model": model(prefix)}) == names(model(prefix)) == WEIGHTS


@pytest.mark.parametrize("part", ["_orig_mod", "_checkpoint_wrapped_module", "_checkpoint_wrapped_module._orig_mod"])
def test_a_block_that_is_wrapped_alone_has_its_own_name(part: str) -> None:
    block = {f"net.0.{part}.{name}": tensor() for name in ("weight", "bias")}
    assert names({"model": block}) == WEIGHTS


def test_a_weight_whose_own_name_begins_with_model_keeps_it() -> None:
    assert names(model("model.")) == {f"model.{name}" for name in WEIGHTS}
    assert names({"model": model("model.")}) == {f"model.{name}" for name in WEIGHTS}


def test_the_state_may_lie_deeper() -> None:
    assert names({"app": {"model": model(), "optimizer": adam()}}) == WEIGHTS | SLOTS


def test_the_trained_model_is_told_from_an_average_of_it() -> None:
    found = names({"ema": {**model(), "more": tensor()}, "model": model()})
    assert found == WEIGHTS | {f"ema.{name}" for name in WEIGHTS} | {"ema.more"}


def test_a_second_optimizer_has_a_number() -> None:
    found = names({"generator": adam(), "discriminator": adam(), "model": model()})
    assert found == WEIGHTS | SLOTS | {name.replace("optimizer", "optimizer2") for name in SLOTS}


@pytest.mark.parametrize("several", [list, tuple])
def test_the_states_may_lie_in_a_list(several: Any) -> None:
    lightning = {"state_dict": model(), "optimizer_states": several([adam()]), "lr_schedulers": [{"last_epoch": 1}]}
    assert names(lightning) == WEIGHTS | SLOTS | {"lr_schedulers.0.last_epoch"}
    second = {f"optimizer2.{key}.{number}" for key in ("exp_avg", "step") for number in (0, 1)}
    assert names({"models": several([model()]), "optimizers": several([adam(), adam()])}) == WEIGHTS | SLOTS | second


def test_names_that_would_meet_are_left_as_they_are() -> None:
    structure = {"model": model("module.") | model()}
    assert names(structure) == {f"model.{name}" for name in (*WEIGHTS, *(f"module.{weight}" for weight in WEIGHTS))}


def test_an_optimizer_that_names_its_weights_has_the_numbers_of_its_list(tmp_path: Path) -> None:
    """As ``torch.distributed.checkpoint.state_dict.get_optimizer_state_dict`` gives it."""
    slots = {"b.bias": {"exp_avg": floats(1.0)}, "a.weight": {"exp_avg": floats(2.0)}}
    groups = [{"params": ["a.weight"]}, {"params": ["b.bias"]}]
    state = {
        "model": {"a.weight": floats(3.0), "b.bias": floats(4.0)},
        "optim": {"state": slots, "param_groups": groups},
    }
    tensors = read_checkpoint(TorchSave().write(tmp_path / "x.pt", state)).tensors
    assert list(tensors) == ["a.weight", "b.bias", "optimizer.exp_avg.1", "optimizer.exp_avg.0"]
