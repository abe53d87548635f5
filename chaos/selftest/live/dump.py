"""Defects of the end-of-life checkpoint: its content, its owner and its name (the SDK's part)."""

from __future__ import annotations

from typing import Any

from chaos.agent.leaving import leave
from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import is_moment, replaces, state_of

_CONTROLLER = "chaos.rehearsal.ttp.controller"
_REPLICAS = "chaos.rehearsal.ttp.replicas"


def _locks_beside(agent: Agent, beside: int) -> None:
    @replaces(agent, _CONTROLLER, "Controller._pre_lock")
    def pre_lock(original: Any, *args: Any) -> Any:
        step = original(*args)
        acted(agent, f"the common step is taken for {step + beside}, not {step}")
        return step + beside


def step_too_low(agent: Agent) -> None:
    """Let the controller have the state of the common step saved under the step before it."""
    _locks_beside(agent, -1)


def step_too_high(agent: Agent) -> None:
    """Let the controller have the state saved under the step after it."""
    _locks_beside(agent, 1)


def group_left_out(agent: Agent) -> None:
    """Let the controller ask all replica groups but the last one to save."""

    @replaces(agent, _REPLICAS, "Replicas.savers")
    def savers(original: Any, *args: Any) -> Any:
        chosen, without = original(*args)
        if chosen:
            acted(agent, f"rank {chosen[-1]} is not asked to save")
        return chosen[:-1], without


def not_entitled(agent: Agent) -> None:
    """Let the controller have the last rank of a group save, whether its state is whole or not."""

    @replaces(agent, _REPLICAS, "Replicas.savers")
    def savers(original: Any, self: Any, good: Any) -> Any:
        chosen, without = original(self, good)
        return _asked(agent, sorted({group[-1] for group in self.groups()}), chosen), without


def both_of_a_group(agent: Agent) -> None:
    """Let the controller have every good rank save, not one of each group."""

    @replaces(agent, _REPLICAS, "Replicas.savers")
    def savers(original: Any, self: Any, good: Any) -> Any:
        chosen, without = original(self, good)
        return _asked(agent, sorted(good), chosen), without


def _asked(agent: Agent, ranks: Any, chosen: Any) -> Any:
    if ranks != chosen:
        acted(agent, f"ranks {ranks} are asked to save, not {chosen}")
    return ranks


def saved_twice(agent: Agent) -> None:
    """Let the controller ask for the save a second time."""

    @replaces(agent, "chaos.rehearsal.ttp.roster", "Roster.ask")
    def ask(original: Any, self: Any, members: Any, message: str, *args: Any, **fields: Any) -> Any:
        if message == "dump":
            acted(agent, "the save is asked for once more")
            original(self, members, message, *args, **fields)
        return original(self, members, message, *args, **fields)


def not_renamed(agent: Agent) -> None:
    """Let a rank that is ordered to rename report that it has, and not do it."""

    @replaces(agent, "chaos.rehearsal.ttp.processor", "Processor._call")
    def call(original: Any, self: Any, name: str, *args: Any) -> Any:
        if name != "rename":
            return original(self, name, *args)
        acted(agent, "nothing is renamed")
        return 0


def _before_end_of_life_save(agent: Agent, mutate: Any) -> None:
    @replaces(agent, "mindspore.train.serialization", "save_checkpoint")
    def save(original: Any, save_obj: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        if "__exception_save__" in (kwargs.get("append_dict") or {}):
            mutate()
        return original(save_obj, path, *args, **kwargs)


def _parameters(agent: Agent) -> Any:
    assert agent.barriers is not None
    return agent.barriers.parameters


def moments_zeroed(agent: Agent) -> None:
    """Save the optimizer's moments as zeros."""
    if agent.place.rank is None:
        return

    def zero() -> None:
        from mindspore import Tensor

        for name, parameter in _parameters(agent):
            if is_moment(name):
                if parameter.asnumpy().any():
                    acted(agent, f"{name} is saved as zeros")
                parameter.set_data(Tensor(parameter.asnumpy() * 0))

    _before_end_of_life_save(agent, zero)


def state_of_step_before(agent: Agent) -> None:
    """Save the weights as they were before the last update, under the number of the step after it."""
    if agent.place.rank is None:
        return
    before = {}

    @replaces(agent, "chaos.rehearsal.device.memory", "Memory.update_begins")
    def update_begins(original: Any, self: Any) -> None:
        before.update(state_of(agent))
        original(self)

    def go_back() -> None:
        from mindspore import Tensor

        for name, parameter in _parameters(agent):
            if name != "global_step" and "tft_g_one_flag" not in name:
                if (parameter.asnumpy() != before[name]).any():
                    acted(agent, f"{name} is saved as it was before the update")
                parameter.set_data(Tensor(before[name]))

    _before_end_of_life_save(agent, go_back)


def exits_with_zero(agent: Agent) -> None:
    """Let a rank that is ordered to exit because of a failure end with code 0."""

    @replaces(agent, "chaos.rehearsal.finished_ranks", "note")
    def note(original: Any, end: str, rank: int) -> None:
        original(end, rank)
        if end == "exiting":
            acted(agent, "it exits with code 0")
            leave(0, "a seeded defect ends this rank with code 0")
