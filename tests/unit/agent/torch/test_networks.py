"""A second network's weights and saved buffers are part of the state, by the names of its module's ``state_dict``."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.agent.torch.networks import Networks, networks_of
from chaos.agent.torch.optimizers import state_of


class Value:
    """A weight, or a buffer."""

    def __init__(self, *, requires_grad: bool = True) -> None:
        self.requires_grad = requires_grad


class Module:
    """A module of PyTorch, as far as the agent looks into it."""

    def __init__(self, *names: str, buffers: tuple[str, ...] = (), scratch: str = "", **within: Module) -> None:
        self._modules = within
        self._parameters = {name: Value() for name in names}
        self._buffers = {name: Value(requires_grad=False) for name in (*buffers, *filter(None, [scratch]))}
        self._non_persistent_buffers_set = {scratch}

    def _all(self, kind: str, prefix: str = "") -> Iterator[tuple[str, Value]]:
        for name, value in getattr(self, kind).items():
            yield prefix + name, value
        for name, module in self._modules.items():
            yield from module._all(kind, f"{prefix}{name}.")

    def named_parameters(self) -> Iterator[tuple[str, Value]]:
        return self._all("_parameters")

    def named_buffers(self) -> Iterator[tuple[str, Value]]:
        return self._all("_buffers")

    def parameters(self) -> list[Value]:
        return [value for _, value in self.named_parameters()]

    def get_submodule(self, path: str) -> Module:
        module = self
        for name in path.split(".") if path else ():
            module = module._modules[name]
        return module

    def tree(self) -> list[Module]:
        return [self, *(held for within in self._modules.values() for held in within.tree())]


def optimizer(*modules: Module, more: tuple[Value, ...] = ()) -> Any:
    return SimpleNamespace(
        param_groups=[{"params": [*(weight for module in modules for weight in module.parameters()), *more]}]
    )


def alive(*roots: Module) -> list[Module]:
    return list({id(module): module for root in roots for module in root.tree()}.values())


def judge() -> Module:
    norm = Module("weight", buffers=("running_mean",), scratch="noise")
    return Module(net=Module(linear=Module("weight"), norm=norm))


@pytest.fixture
def model() -> Module:
    return Module("weight", buffers=("mean",))


def names(model: Module, optimizers: list[Any], *roots: Module) -> list[str]:
    return [name for name, _ in Networks(lambda: alive(*roots)).state(model, optimizers)]


NAMES = ["network2.net.linear.weight", "network2.net.norm.weight", "network2.net.norm.running_mean"]


def test_the_weights_and_saved_buffers_have_the_names_of_their_own_module(model: Module) -> None:
    second = judge()
    assert names(model, [optimizer(model), optimizer(second)], model, second) == NAMES


def test_neither_a_wrapper_nor_a_container_changes_the_names(model: Module) -> None:
    second = judge()
    around = Module(module=second)
    both = Module(first=model, second=second)
    with_more = Module(judge=second, frozen=Module("weight"))
    optimizers = [optimizer(second), optimizer(model)]
    for roots in ((model, second), (around, model), (both, around), (with_more, both), (both, with_more, around)):
        assert names(model, optimizers, *roots) == NAMES


@pytest.mark.parametrize("wrapper", ["_orig_mod", "_checkpoint_wrapped_module"])
def test_a_wrapped_block_within_the_model_or_a_second_network_has_the_name_of_its_state(wrapper: str) -> None:
    block = Module()
    block._modules[wrapper] = Module("weight", buffers=("running_mean",), scratch="noise")
    first = Module(net=Module(norm=block))
    second = copy.deepcopy(first)
    seen = [name for name, _ in state_of(first, [])]
    assert seen == ["net.norm.weight", "net.norm.running_mean"]
    assert names(first, [optimizer(first), optimizer(second)], first, second) == [f"network2.{name}" for name in seen]


def test_each_further_network_has_a_number_in_the_order_of_the_optimizers(model: Module) -> None:
    second, third = Module("weight"), Module("bias")
    optimizers = [optimizer(third), optimizer(model), optimizer(second)]
    assert names(model, optimizers, second, third, model) == ["network2.bias", "network3.weight"]
    assert names(model, [optimizer(third, model, second)], second, model, third) == ["network2.bias", "network3.weight"]


def test_a_network_that_no_optimizer_trains_is_no_part_of_the_state(model: Module) -> None:
    assert names(model, [optimizer(model)], model, judge()) == []


def test_frozen_weights_beside_trained_ones_are_left_out(model: Module) -> None:
    second = Module("weight", "frozen")
    assert names(model, [optimizer(more=(second._parameters["weight"],))], model, second) == ["network2.weight"]


def test_a_weight_of_no_module_goes_by_its_optimizer(model: Module) -> None:
    optimizers = [optimizer(model), optimizer(more=(Value(), Value()))]
    assert names(model, optimizers, model) == ["optimizer2.parameter.0", "optimizer2.parameter.1"]


def test_modules_are_looked_for_only_when_the_weights_beside_the_model_change(model: Module) -> None:
    second, sought = judge(), []
    networks = Networks(lambda: sought.append(1) or alive(second))  # type: ignore[func-returns-value]
    for _ in range(3):
        assert list(networks.state(model, [optimizer(model)])) == []
    assert sought == [], "a job with one network pays nothing"
    for _ in range(3):
        assert len(list(networks.state(model, [optimizer(second)]))) == 3
    assert len(sought) == 1
    third = Module("weight")
    assert len(list(networks.state(model, [optimizer(second, third)]))) == 4
    assert len(sought) == 2


def test_a_network_that_is_made_anew_is_found_again(model: Module) -> None:
    held = [judge()]
    networks = Networks(lambda: alive(*held))
    first = dict(networks.state(model, [optimizer(held[0])]))
    held[:] = [judge()]
    second = dict(networks.state(model, [optimizer(held[0])]))
    assert [*first] == [*second] == NAMES
    assert all(first[name] is not second[name] for name in NAMES)


def test_the_smallest_module_with_all_weights_is_the_network(model: Module) -> None:
    second = judge()
    weights, own = second.parameters(), {id(value) for value in model.parameters()}
    roots = (Module(second=second, other=Module("weight")), Module(first=model, second=second))
    assert networks_of(weights, own, alive(*roots)) == [second]


def test_modules_of_pytorch_are_found_among_all_objects() -> None:
    torch = pytest.importorskip("torch")
    model, second = torch.nn.Linear(2, 1), torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizers = [torch.optim.SGD(second.parameters(), lr=0.1), torch.optim.SGD(model.parameters(), lr=0.1)]
    state = dict(Networks().state(model, optimizers))
    assert list(state) == [f"network2.{name}" for name in ("0.weight", "0.bias", "1.weight", "1.bias")] + [
        f"network2.1.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")
    ]
    assert state["network2.0.weight"] is second[0].weight
