"""Defects of a rollback after an abnormal norm, and of a restart from periodic checkpoints (the job's part)."""

from __future__ import annotations

import os
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import is_moment, replaces

_NORM = "global_norm"
_LAST_STEP = 8
"""The last step of the base scenario."""


def one_checkpoint_too_far(agent: Agent) -> None:
    """Let the ranks go back to the checkpoint before the newest one."""

    @replaces(agent, _NORM, "newest_checkpoint")
    def newest(original: Any, directory: str) -> Any:
        def load() -> Any:
            files = sorted(
                (os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".ckpt")),
                key=lambda path: os.stat(path).st_mtime_ns,
            )
            acted(agent, f"{files[-2]} is taken for the newest checkpoint, not {files[-1]}")
            os.utime(files[-2])
            return original(directory)()

        return load


def moments_not_rolled_back(agent: Agent) -> None:
    """Roll back the weights, but not the optimizer's moments."""

    @replaces(agent, "mindspore.train.serialization", "load_param_into_net")
    def load(original: Any, net: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        kept = {name: parameter for name, parameter in parameters.items() if not is_moment(name)}
        if len(kept) < len(parameters):
            acted(agent, "the moments are not rolled back")
        return original(net, kept, *args, **kwargs)


def data_not_rolled_back(agent: Agent) -> None:
    """Let the data go on behind the abnormal step, as if nothing was trained again."""

    @replaces(agent, "mindspore.dataset.engine.datasets", "Dataset.set_init_step")
    def set_init_step(original: Any, self: Any, step: int) -> None:
        acted(agent, f"the data begins behind step {step + 1}, not {step}")
        original(self, step + 1)


def record_not_written(agent: Agent) -> None:
    """Keep rank 0 from writing abnormal_global_norm.json."""

    @replaces(agent, _NORM, "GlobalNormMonitor._write")
    def write(original: Any, self: Any) -> None:
        acted(agent, "the norms are not written down")


def record_stale(agent: Agent) -> None:
    """Write the norm of another step into abnormal_global_norm.json."""

    @replaces(agent, _NORM, "GlobalNormMonitor._write")
    def write(original: Any, self: Any) -> None:
        norms = self._norms
        acted(agent, "the norms are written down for the steps before")
        self._norms = {str(int(step) - 1): value for step, value in norms.items()}
        original(self)
        self._norms = norms


def rolled_back_twice(agent: Agent) -> None:
    """Roll back a second time after the first, without an abnormal norm."""
    left = [2]

    @replaces(agent, _NORM, "GlobalNormMonitor.on_train_step_end")
    def on_train_step_end(original: Any, self: Any, run_context: Any) -> None:
        step = int(self._optimizer.global_step.asnumpy().reshape(-1)[0])
        if left == [2] and step == 6:
            left[0] = 1
        elif left == [1] and step == 6:
            left[0] = 0
            acted(agent, f"step {step} is rolled back without an abnormal norm")
            self._norms.clear()
            threshold, self._threshold = self._threshold, 0.0
            try:
                original(self, run_context)
            finally:
                self._threshold = threshold
        original(self, run_context)


def threshold_ignored(agent: Agent) -> None:
    """Hide the norm from the monitor: training goes on from the abnormal step."""

    @replaces(agent, _NORM, "GlobalNormMonitor.on_train_step_end")
    def on_train_step_end(original: Any, self: Any, run_context: Any) -> None:
        norm = float(self._optimizer.global_norm.asnumpy())
        if norm >= self._threshold:
            acted(agent, f"the norm {norm} is not looked at")


def next_checkpoint_spoilt(agent: Agent) -> None:
    """Put moments of zero into the last periodic checkpoint, saved after the rollback. No rank loads it in this run."""
    if agent.barriers is None:
        return
    barriers = agent.barriers

    @replaces(agent, "mindspore.train.serialization", "save_checkpoint")
    def save(original: Any, *args: Any, **kwargs: Any) -> Any:
        from mindspore import Tensor

        moments = [
            parameter for name, parameter in barriers.parameters if is_moment(name) and barriers.step == _LAST_STEP
        ]
        before = [array.asnumpy().copy() for array in moments]
        for array in moments:
            if array.asnumpy().any():
                acted(agent, f"{array.name} is saved as zeros")
            array.set_data(Tensor(array.asnumpy() * 0))
        try:
            return original(*args, **kwargs)
        finally:
            for array, values in zip(moments, before):
                array.set_data(Tensor(values))
