"""Defects of a job in plain Python: it has a random state, shuffles its data for each epoch, and runs in seconds."""

from __future__ import annotations

import time
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, replaces

_STATE = "chaos.rehearsal.plain.state"
_DEVICE = "chaos.rehearsal.plain.device"


def _not_restored(agent: Agent, unwanted: Any) -> None:
    """Let the resumed job keep its own value of the parameters whose name is unwanted."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, _STATE, "State.load")
    def load(original: Any, self: Any, saved: Any) -> None:
        kept = {name: array.copy() for name, array in self.parameters.items() if unwanted(name)}
        original(self, saved)
        for name, array in kept.items():
            if (array != self.parameters[name]).any():
                acted(agent, f"{name} is not restored")
            self.parameters[name][...] = array


def random_state_lost(agent: Agent) -> None:
    """Leave the random state unrestored: the dropout begins anew."""
    _not_restored(agent, lambda name: name == "random_state")


def learning_rate_lost(agent: Agent) -> None:
    """Leave the learning rate unrestored: the schedule begins anew."""
    _not_restored(agent, lambda name: name == "learning_rate")


def second_moments_lost(agent: Agent) -> None:
    """Leave one of the two moments of Adam unrestored."""
    _not_restored(agent, lambda name: name.startswith("adam_v."))


def draws_repeated(agent: Agent) -> None:
    """Restore the random state, but draw from another generator that begins anew."""
    if agent.configuration.attempt != RESUME:
        return
    first: list[Any] = []

    @replaces(agent, "chaos.rehearsal.plain.network", "dropout")
    def dropout(original: Any, random_state: Any, mesh: Any) -> Any:
        first.append(random_state.copy())
        state = random_state.copy()
        state[1] -= first[0][1]
        if (state != random_state).any():
            acted(agent, "the draws begin anew")
        return original(state, mesh)


def order_of_first_epoch(agent: Agent) -> None:
    """Read the data in the order of the first epoch again."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, "chaos.rehearsal.plain.data", "Batches.batch")
    def batch(original: Any, self: Any, position: int) -> Any:
        if position >= self.per_epoch:
            acted(agent, f"the batch at {position} is the one at {position % self.per_epoch}")
        return original(self, position % self.per_epoch)


def _after_copy(agent: Agent, name: str, mutate: Any) -> None:
    if agent.place.rank is None:
        return

    @replaces(agent, _DEVICE, "PlainDevice.copy")
    def copy(original: Any, self: Any, parameters: Any, source: int, target: int) -> None:
        original(self, parameters, source, target)
        if self.rank == target:
            assert agent.barriers is not None
            parameter = dict(agent.barriers.parameters)[name]
            copied = parameter.copy()
            mutate(parameter)
            if (parameter != copied).any():
                acted(agent, f"{name} is not what was copied")


def random_state_not_copied(agent: Agent) -> None:
    """Let the repaired rank draw from the beginning of its random numbers."""

    def mutate(parameter: Any) -> None:
        parameter[1] = 0

    _after_copy(agent, "random_state", mutate)


def power_not_copied(agent: Agent) -> None:
    """Let the repaired rank correct the bias of its moments as in the first step."""

    def mutate(parameter: Any) -> None:
        parameter[...] = 1

    _after_copy(agent, "beta2_power", mutate)


def copy_broken_off(agent: Agent) -> None:
    """Copy only the first half of the parameters, and let both ranks report that all are copied."""

    @replaces(agent, _DEVICE, "PlainDevice.copy")
    def copy(original: Any, self: Any, parameters: Any, source: int, target: int) -> None:
        half = list(parameters)
        acted(agent, f"{len(half) // 2} of {len(half)} parameters are copied")
        original(self, half[: len(half) // 2], source, target)


def second_error(agent: Agent) -> None:
    """Let the rank that lost its memory report it, and fail over its own handling before any repair."""
    if agent.place.rank is None:
        return

    @replaces(agent, "chaos.rehearsal.plain.tolerance", "Tolerance.recover")
    def recover(original: Any, self: Any, error: RuntimeError) -> Any:
        if "UCEError" not in str(error):
            return original(self, error)
        self._tft.tft_report_error(self._tft.ReportState.RS_UCE.value)
        acted(agent, "the handling of the error fails over None")
        missing: Any = None
        return missing.step


def slower_after_repair(agent: Agent) -> None:
    """Prolong each step by a third of a second once the job has been repaired."""
    if agent.place.rank is None:
        return
    repaired: list[bool] = []

    @replaces(agent, "chaos.rehearsal.plain.tolerance", "Tolerance.recover")
    def recover(original: Any, self: Any, error: RuntimeError) -> Any:
        step = original(self, error)
        repaired.append(True)
        return step

    @replaces(agent, "chaos.rehearsal.plain.tolerance", "Tolerance.begin_update")
    def begin_update(original: Any, self: Any) -> None:
        if repaired:
            acted(agent, "the update begins a third of a second later")
            time.sleep(0.35)
        original(self)
