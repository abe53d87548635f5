"""The device layer of a MindFormers job that is rehearsed on the CPU.

It has the kernels that a CPU lacks, the sum of the gradients over the ranks, and the general needs of a rehearsed
MindSpore job from a device. On Ascend none of this is loaded.
"""

from __future__ import annotations

from types import ModuleType

from chaos.agent.start import Agent
from chaos.rehearsal.device import device as mindspore_device
from chaos.rehearsal.mindformers import kernels
from chaos.rehearsal.mindformers.gradients import replace_reduction
from chaos.rehearsal.mindformers.tolerance import replace_wrapper


def install(agent: Agent) -> None:
    """Install the layer in this process; an extension of the agent. The scheduler ends here."""
    device = mindspore_device.install(agent)
    if device is None:
        return
    watch = agent.imports.watch
    kernels.install(watch)
    watch("mindspore.train.callback._train_fault_tolerance", lambda module: replace_wrapper(device, module))
    watch("mindspore.communication._comm_helper", _replace_cluster)
    watch("mindspore.mint.distributed", device.replace_barrier)
    watch("mindformers.wrapper.wrapper", lambda module: replace_reduction(device, agent, module))


def _replace_cluster(module: ModuleType) -> None:
    """Replace the cluster that MindFormers asks for (2.1) by the communicator's."""
    module._is_initialized = lambda: True  # type: ignore[attr-defined]
