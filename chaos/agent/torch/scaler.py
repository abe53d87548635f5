"""The scaler of gradients of a training with mixed precision: it scales the loss, and leaves out some updates.

PyTorch's ``GradScaler`` leaves out the update of a step with a gradient that is not finite. The first steps of a
training are often among them, since the scale begins high.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from chaos.agent.torch.loop import TorchLoop


def hook_scaler(loop: TorchLoop, module: ModuleType) -> None:
    """See the losses that a scaler scales, and the updates that it makes or leaves out."""
    scaler: Any = module.GradScaler
    if not {"scale", "step"} <= vars(scaler).keys():  # it inherits them from the class that is hooked
        return
    scale: Callable[..., Any] = scaler.scale
    step: Callable[..., Any] = scaler.step

    @functools.wraps(scale)
    def scale_with_agent(self: Any, outputs: Any) -> Any:
        scaled = scale(self, outputs)
        loop.scales(outputs, scaled)
        return scaled

    @functools.wraps(step)
    def step_with_agent(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = step(self, optimizer, *args, **kwargs)
        loop.scaler_stepped(optimizer, left_out=_left_out(self, optimizer))
        return result

    scaler.scale, scaler.step = scale_with_agent, step_with_agent


def _left_out(scaler: Any, optimizer: Any) -> bool:
    """Return whether the scaler has found a gradient that is not finite, and so left out the update.

    It keeps that for each optimizer until its ``update``, as checked with PyTorch 2.1 to 2.13. One that is switched off
    keeps nothing.
    """
    state: Any = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer), {})
    return any(float(found) > 0 for found in state.get("found_inf_per_device", {}).values())
