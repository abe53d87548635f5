"""A fault changes just the value that it names, in its step, before PyTorch uses it; the rank records the change."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests, array_digest, array_of
from chaos.agent.record import Record
from chaos.agent.step_source import StepSource
from chaos.agent.torch.alterations import Alterations, install
from chaos.agent.torch.loop import TorchLoop
from chaos.agent.torch.optimizers import Optimizers
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events

torch = pytest.importorskip("torch")

STEP = 2


class Harness:
    """A channel whose harness answers every barrier with one order."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"message": "alter", **self._order}


class Job:
    """Training on the host, by the points at which the hooks are set; a fault is armed in step 2."""

    def __init__(self, record: Record, phase: str, order: dict[str, Any], dtype: Any) -> None:
        armed = [{"fault": "it", "step": STEP, "phase": phase}]
        self.barriers = Barriers(record, Harness(order), armed)  # type: ignore[arg-type]
        self.training = Training(record, self.barriers, Digests(record, 1))
        optimizers = Optimizers()
        self.loop = TorchLoop(self.training, StepSource(record, self.training), optimizers)
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)).to(dtype)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        optimizers.note(self.optimizer)
        agent = SimpleNamespace(barriers=self.barriers, record=record, torch_loop=self.loop)
        install(agent)  # type: ignore[arg-type]
        self.inputs = torch.ones(4, 3, dtype=dtype)
        self.losses: list[float] = []

    def step(self, runs: int = 1, part: int | None = None) -> dict[str, Any]:
        """Train a step of several backward runs, of one layer only on request; return the gradients of its update."""
        self.optimizer.zero_grad()
        for _ in range(runs):
            self.loop.forward(self.model, self.inputs)
            loss = (self.model if part is None else self.model[part])(self.inputs).pow(2).mean()
            loss.backward(self.loop.backward(loss, None))
            self.losses.append(float(loss.detach()))
        gradients = {name: weight.grad for name, weight in self.model.named_parameters()}
        gradients = {name: None if held is None else held.clone() for name, held in gradients.items()}
        self.loop.update_begins(self.optimizer)
        self.optimizer.step()
        self.loop.update_ends(self.optimizer)
        return gradients


Make = Callable[..., Job]


@pytest.fixture
def job(record: Record) -> Make:
    def make(phase: str, *, dtype: Any = torch.float32, **order: Any) -> Job:
        return Job(record, phase, order, dtype)

    return make


def both(job: Job, runs: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """The gradients of the step with the fault, and those that the same weights have without it."""
    job.step(runs)
    before = {name: held.clone() for name, held in job.model.state_dict().items()}
    changed = job.step(runs)
    job.model.load_state_dict(before)
    return changed, job.step(runs)


@pytest.mark.parametrize("runs", [1, 3])
def test_a_factor_scales_all_gradients_of_its_step_and_of_no_other(job: Make, events: Events, runs: int) -> None:
    spiking = job("allreduce.enter", factor=8.0, repeat=0)
    changed, without = both(spiking, runs)
    for name, gradient in without.items():
        assert torch.equal(changed[name], 8 * gradient), name
    (scaled,) = events("fault.scaled")
    assert (scaled.data["fault"], scaled.data["step"], scaled.data["phase"]) == ("it", STEP, "allreduce.enter")
    assert (scaled.data["factor"], scaled.data["norm"]) == (8.0, None)


def test_a_norm_is_refused_since_the_other_ranks_gradients_are_not_known(job: Make, events: Events) -> None:
    spiking = job("allreduce.enter", norm=8.0, repeat=0)
    changed, without = both(spiking)
    assert all(torch.equal(changed[name], without[name]) for name in without)
    (refused,) = events("fault.refused")
    assert "no norm can be reached" in refused.data["reason"]


@pytest.mark.parametrize(
    ("element", "name", "place"), [(0, "0.weight", (0, 0)), (4, "0.weight", (1, 1)), (7, "0.bias", (1,))]
)
def test_one_bit_of_one_gradient_is_another(
    job: Make, events: Events, element: int, name: str, place: tuple[int, ...]
) -> None:
    changed, without = both(job("allreduce.enter", what="gradient", element=element, bit=31))
    assert changed[name][place] == -without[name][place] != 0
    changed[name][place] *= -1
    assert all(torch.equal(changed[each], without[each]) for each in without)
    (altered,) = events("fault.altered")
    assert (altered.data["parameter"], altered.data["element"], altered.data["bit"]) == (name, element, 31)
    assert float.fromhex(altered.data["after"]) == -float.fromhex(altered.data["before"])


def test_of_several_backward_runs_the_first_alone_has_the_bit(job: Make, events: Events) -> None:
    changed, without = both(job("allreduce.enter", what="gradient", element=0, bit=31), runs=3)
    assert changed["0.weight"][0, 0] == pytest.approx(float(without["0.weight"][0, 0]) / 3)
    assert len(events("fault.altered")) == 1


def test_a_gradient_that_does_not_come_is_not_altered(job: Make, events: Events) -> None:
    flipping = job("allreduce.enter", what="gradient", element=9, bit=31)  # of the second layer
    flipping.step()
    assert flipping.step(part=0)["1.weight"] is None
    assert events("fault.altered") == []
    (refused,) = events("fault.refused")
    assert "no gradient of the weight came" in refused.data["reason"]
    flipping.step()
    assert events("fault.altered") == [], "the hook is gone with its step"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("bit", [0, 14, -1])
def test_a_bit_of_a_weight_is_flipped_in_place(job: Make, events: Events, dtype: Any, bit: int) -> None:
    size = torch.finfo(dtype).bits
    flipping = job("step.begin", dtype=dtype, what="weight", parameter="0.weight", element=4, bit=bit % size)
    flipping.step()
    weight = flipping.model[0].weight
    before, digest = weight.detach().clone(), array_digest(array_of(weight))
    flipping.loop.forward(flipping.model, flipping.inputs)
    integers = {16: torch.int16, 32: torch.int32, 64: torch.int64}[size]
    bits = before.view(integers) ^ weight.detach().view(integers)
    assert [int(held) % 2**size for held in bits.reshape(-1)] == [0, 0, 0, 0, 1 << bit % size, 0]
    (altered,) = events("fault.altered")
    assert altered.data["digest_before"] == digest
    assert altered.data["digest_after"] == array_digest(array_of(weight))
    assert altered.data["dtype"] == str(dtype).rpartition(".")[2]
    assert float.fromhex(altered.data["before"]) == float(before[1, 1])


def test_without_a_name_a_weight_is_drawn_by_the_seed(job: Make, events: Events) -> None:
    flipping = job("step.begin", what="weight", seed=3)
    flipping.step()
    flipping.step()
    (altered,) = events("fault.altered")
    assert altered.data["parameter"] in dict(flipping.model.named_parameters())


def test_a_slot_of_the_optimizer_can_be_named(job: Make, events: Events) -> None:
    flipping = job("step.begin", what="weight", parameter="optimizer.exp_avg.0", element=0, bit=31)
    flipping.step()
    before = flipping.optimizer.state[flipping.model[0].weight]["exp_avg"].clone()
    flipping.loop.forward(flipping.model, flipping.inputs)
    assert flipping.optimizer.state[flipping.model[0].weight]["exp_avg"][0, 0] == -before[0, 0] != 0
    assert events("fault.altered")


def test_a_name_that_does_not_exist_is_refused_with_those_that_do(job: Make, events: Events) -> None:
    flipping = job("step.begin", what="weight", parameter="other")
    flipping.step()
    flipping.step()
    assert events("fault.altered") == []
    assert "no parameter 'other': 0.weight, " in events("fault.refused")[0].data["reason"]


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_the_loss_that_the_script_holds_is_no_number_and_no_gradient_is(job: Make, events: Events, value: str) -> None:
    spoilt = job("forward", what="loss", value=value)
    spoilt.step()
    gradients = spoilt.step()
    assert str(spoilt.losses[-1]) == value
    assert not any(torch.isfinite(gradient).any() for gradient in gradients.values())
    (altered,) = events("fault.altered")
    assert (altered.data["what"], altered.data["phase"], altered.data["after"]) == ("loss", "forward", value)
    digest = events("digest", step=STEP)[0]
    assert digest.data["loss"] == value


def test_a_rank_without_an_armed_fault_has_no_alterations(record: Record) -> None:
    training = Training(record, Barriers(record, None, []), Digests(record, 1))
    loop = TorchLoop(training, StepSource(record, training), Optimizers())
    install(SimpleNamespace(barriers=Barriers(record, None, []), record=record, torch_loop=loop))  # type: ignore[arg-type]
    assert loop.alterations is None


def test_shards_have_no_gradient_that_a_hook_gets(record: Record, events: Events) -> None:
    class Shard:
        requires_grad = True
        placements = (SimpleNamespace(is_replicate=lambda: False),)

        def is_floating_point(self) -> bool:
            return True

    model = SimpleNamespace(named_parameters=lambda: [("0.weight", Shard())])
    barriers = Barriers(record, Harness({"what": "gradient"}), [{"fault": "it", "step": 0, "phase": "allreduce.enter"}])  # type: ignore[arg-type]
    trained: Any = SimpleNamespace(model=model, state=list)
    alterations = Alterations(trained, barriers, record)
    barriers.reach("allreduce.enter")
    alterations.backward(torch.ones(()), None)
    assert "the weights are shards" in events("fault.refused")[0].data["reason"]
