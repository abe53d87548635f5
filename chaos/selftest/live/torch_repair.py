"""Defects of the repair of a job of PyTorch, and of its end-of-life checkpoint."""

from __future__ import annotations

from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import replaces

_TOLERANCE = "chaos.rehearsal.torch.tolerance"
_MODEL = "chaos.rehearsal.torch.model"


def nothing_copied(agent: Agent) -> None:
    """Let the repaired rank take the state that it receives for nothing: its own stays lost."""

    @replaces(agent, _TOLERANCE, "Tolerance._repair")
    def repair(original: Any, self: Any, *args: Any) -> None:
        before = [tensor.detach().clone() for tensor in self._state.tensors()]
        original(self, *args)
        if agent.place.rank == 1:
            acted(agent, "the replica's state is received and not kept")
            for tensor, value in zip(self._state.tensors(), before):
                tensor.detach().copy_(value)


def moments_lost(agent: Agent) -> None:
    """Let the repaired rank take the weights of its replica, and moments of zero."""

    @replaces(agent, _TOLERANCE, "Tolerance._repair")
    def repair(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        if agent.place.rank == 1:
            acted(agent, "the moments are not kept")
            for name, tensor in self._state.named():
                if "exp_avg" in name:
                    tensor.zero_()


def rolled_back_too_far(agent: Agent) -> None:
    """Let all ranks go back to the step before the one that their state is of."""

    @replaces(agent, _TOLERANCE, "Tolerance._rollback")
    def rollback(original: Any, self: Any, step: int, *args: Any) -> None:
        acted(agent, f"the rollback is to step {step - 1}")
        original(self, step - 1, *args)


def other_noise(agent: Agent) -> None:
    """Draw other noise in the steps that are trained after a repair, as where a generator is not set back."""
    repaired: list[int] = []

    @replaces(agent, _TOLERANCE, "Tolerance._rollback")
    def rollback(original: Any, self: Any, step: int, *args: Any) -> None:
        repaired.append(step)
        original(self, step, *args)

    @replaces(agent, _MODEL, "State.batch")
    def batch(original: Any, self: Any, rank: int) -> Any:
        import torch

        result = original(self, rank)
        if repaired:
            acted(agent, "the noise is not that of the step")
            torch.manual_seed(repaired[0])
        return result


def updates_not_reported(agent: Agent) -> None:
    """Keep rank 1 from reporting updates to the SDK after the repair."""
    if agent.place.rank != 1:
        return
    repaired: list[int] = []

    @replaces(agent, _TOLERANCE, "Tolerance._rollback")
    def rollback(original: Any, self: Any, step: int, *args: Any) -> None:
        repaired.append(step)
        original(self, step, *args)

    @replaces(agent, _TOLERANCE, "Tolerance.end_update")
    def end_update(original: Any, self: Any) -> None:
        if not repaired:
            original(self)
            return
        acted(agent, "the update is not reported")


def weights_saved_alone(agent: Agent) -> None:
    """Save the optimizer's moments as zero in the end-of-life checkpoint."""

    @replaces(agent, "chaos.rehearsal.torch.checkpoints", "Checkpoints.save_end_of_life")
    def save(original: Any, self: Any, *args: Any) -> None:
        acted(agent, "the moments are not saved")
        for name, tensor in self._state.named():
            if "exp_avg" in name:
                tensor.zero_()
        original(self, *args)


def loaded_without_counters(agent: Agent) -> None:
    """Count AdamW's steps from 0 in the job that goes on."""

    @replaces(agent, _MODEL, "State.restore")
    def restore(original: Any, self: Any, content: Any) -> None:
        original(self, content)
        acted(agent, "the counters are not restored")
        for name, tensor in self.named():
            if ".step." in name:
                tensor.zero_()
