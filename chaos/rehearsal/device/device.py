"""The device layer of a rehearsal: the services that MindSpore expects of an Ascend device, on a CPU.

The agent installs it in every rank, after the import of each module that binds the real device. The list of replaced
functions, and of their callers, follows MindSpore 2.10's own sources; everything else that a job runs is MindSpore's.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any, Callable

from chaos.agent.leaving import leave
from chaos.agent.start import Agent
from chaos.rehearsal import finished_ranks
from chaos.rehearsal.device.groups import Groups
from chaos.rehearsal.device.interconnect import Fabric
from chaos.rehearsal.device.memory import Memory
from chaos.rehearsal.in_rank.alterations import Alterations


def install(agent: Agent) -> Device | None:
    """Install the device layer in this process; an extension of the agent. Returns the device of a rank."""
    if agent.place.role == "scheduler":
        # Ranks find each other through the communicator below, so msrun's scheduler has nothing to do. It would run
        # the same script as the ranks; it leaves before that.
        leave(0, "the scheduler of a rehearsal has nothing to do: the ranks find each other without it")
    if agent.place.rank is None:
        return None
    device = Device(agent)
    watch = agent.imports.watch
    watch("mindspore.communication.management", device.replace_communication)
    watch("mindspore.communication", device.replace_communication)
    watch("mindspore.ops", device.replace_operators)
    watch("mindspore.communication.comm_func", device.replace_barrier)
    watch("mindspore.utils.utils", device.replace_handle)
    watch("mindspore.train.callback._train_fault_tolerance", device.replace_fault_tolerance)
    watch("mindspore.train.model", device.replace_training)
    if os.environ.get("MS_JIT") != "0":
        watch("mindspore.nn.optim.momentum", run_as_written)
    watch("mindspore.nn.wrap.cell_wrapper", device.replace_gradient_reduction)
    watch("mindspore.nn.wrap.grad_reducer", device.replace_gradient_reduction)
    return device


def run_as_written(module: ModuleType) -> None:
    """Remove ``jit`` from the optimizer.

    With ``jit`` the fault tolerance's wrapper would be compiled along with the optimizer, and so would the all-reduce
    of its flag, which is this layer's.
    """
    module.Momentum.construct = module.Momentum.construct.__wrapped__


class Device(Fabric):
    """One rank's device: its communicator and the functions that replace the device's."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        assert agent.barriers is not None
        self._memory = Memory(agent.barriers, _set_tensor)
        self.alterations = Alterations(agent.barriers, self._record, _set_tensor)
        self._groups = Groups(self._rank, self._ranks)

    def all_reduce(self, array: Any, group: str | None = None) -> Any:
        """Sum over the ranks of a named group (default: all)."""
        _refuse_without_state()
        return self.reduce(array, self._groups.members(group))

    def expected(self, array: Any, group: str | None = None) -> list[Any]:
        """Return the other ranks' contributions to their next all-reduce in a named group."""
        return self.awaited(array, self._groups.members(group))

    # mindspore.communication: no cluster is formed, rank and size come from msrun's environment.

    def replace_communication(self, module: ModuleType) -> None:
        """Replace the cluster's rank, size, joining and groups by this communicator's."""
        replacements: dict[str, Callable[..., Any]] = {"init": self._init, **self._groups.replacements()}
        for name, function in replacements.items():
            if hasattr(module, name):
                setattr(module, name, function)
        if hasattr(module, "GlobalComm"):
            module.GlobalComm.INITED = True
        from mindspore._c_expression import CollectiveManager

        CollectiveManager.comm_switch_nic = self.switch_network

    def replace_barrier(self, module: ModuleType) -> None:
        """Replace the barrier by a barrier of all ranks, which MindSpore does not have on a CPU."""
        module.barrier = self._barrier  # type: ignore[attr-defined]

    def _barrier(self, group: str | None = None) -> None:
        del group
        import numpy

        self.all_reduce(numpy.zeros(1, numpy.int32))

    def _init(self, backend_name: str | None = None) -> None:
        del backend_name
        self.join()

    # mindspore.ops: the collective that a job calls itself, as the job with sliced weights does.

    def replace_operators(self, module: ModuleType) -> None:
        """Replace ``ops.AllReduce`` by a sum over this communicator, also for later importers."""
        module.AllReduce = functools.partial(_AllReduce, self)  # type: ignore[attr-defined]

    # mindspore.utils.utils and the fault tolerance callback: a device that reports to be an Ascend one.

    def replace_handle(self, module: ModuleType) -> None:
        """Run ``TftHandle.init``, which MindSpore calls on Ascend only."""
        module.context = _AscendContext(module.context)  # type: ignore[attr-defined]

    def replace_fault_tolerance(self, module: ModuleType) -> None:
        """Replace the device's part of ``TrainFaultTolerance`` and of its optimizer wrapper.

        The end of training is noted for a controller outside: before the processor leaves, which may wait for the
        controller, and also where the processor never leaves, as with TSP alone.
        """
        end = module.TrainFaultTolerance.end

        def noted(callback: Any, run_context: Any) -> None:
            finished_ranks.note(finished_ranks.TRAINED, self._rank)
            end(callback, run_context)

        module.TrainFaultTolerance.end = noted
        module.context = _AscendContext(module.context)  # type: ignore[attr-defined]
        module.direct_copy_to_host = lambda parameter: parameter.asnumpy().reshape(-1)[0]  # type: ignore[attr-defined]
        module.TensorReport = functools.partial(_TensorReport, self._agent, self._memory)  # type: ignore[attr-defined]
        module.ops = _Operators(module.ops, self)  # type: ignore[attr-defined]
        module._stop_device = self._stop  # type: ignore[attr-defined]
        module._get_uce_mem_info = lambda device_id: None  # type: ignore[attr-defined]
        module._get_uce_process_strategy = self._memory.strategy  # type: ignore[attr-defined]
        module._repair_device = lambda device_id: None  # type: ignore[attr-defined]
        module.clean_tdt_channel = lambda: None  # type: ignore[attr-defined]
        module.CollectiveManager = _Collectives(self)  # type: ignore[attr-defined]
        module.send_recv = self._send_recv  # type: ignore[attr-defined]
        module.reset_params = _reset  # type: ignore[attr-defined]
        module._tft_sem_post = lambda: finished_ranks.note(finished_ranks.EXITING, self._rank)  # type: ignore[attr-defined]
        module._finalize_comm = self.leave  # type: ignore[attr-defined]
        module._rebuild_group = self.rebuild  # type: ignore[attr-defined]
        module._pre_launch_send_recv = lambda device_id: None  # type: ignore[attr-defined]

    def replace_training(self, module: ModuleType) -> None:
        """Replace the device's part of the wrapper around training, which is called after a repair.

        In PyNative mode (MindSpore 2.10) an error in the middle of the forward pass leaves half of a graph behind, and
        the next step runs its forward pass twice: one rank would then be ahead of the others by the collectives in it.
        So the rest of the graph is cleared, as MindSpore does itself where it catches such an error.
        """
        executor = getattr(module, "_pynative_executor", None)
        module._reset_error_state = lambda: executor and executor.clear_res()  # type: ignore[attr-defined]
        module._get_optimzer_timestamps = self._memory.timestamps  # type: ignore[attr-defined]
        module.clean_tdt_channel = lambda: None  # type: ignore[attr-defined]

    def _stop(self, device_id: int) -> None:
        del device_id
        self.stop()

    def _send_recv(self, parameters: list[Any], source: int, target: int) -> int:
        """Copy parameters from one rank to another; both ranks call this.

        Returns 0 as the device's success.
        """
        from mindspore import Tensor

        for parameter in parameters:
            if self._rank == source:
                self.join().send(target, parameter.asnumpy())
            else:
                received = self.join().receive(source, parameter.asnumpy())
                parameter.set_data(Tensor(received.copy()))
        return 0

    # Gradients.

    def replace_gradient_reduction(self, module: ModuleType) -> None:
        """Reduce gradients over this communicator."""
        from chaos.rehearsal.device.gradients import gradient_reducer

        module.DistributedGradReducer = gradient_reducer(self, self._agent)  # type: ignore[attr-defined]


def _set_tensor(parameter: Any, values: Any) -> None:
    from mindspore import Tensor

    parameter.set_data(Tensor(values))


def _reset(parameters: list[Any]) -> int:
    """Set parameters to zero, as the device does with accumulated gradients after a repair.

    Returns 0 as its success.
    """
    import numpy

    for parameter in parameters:
        _set_tensor(parameter, numpy.zeros_like(parameter.asnumpy()))
    return 0


def _refuse_without_state() -> None:
    """Refuse the first collective in the new process of a lost rank: it shows only that the rank has come so far.

    The rank has no state yet. Raises RuntimeError with the text by which MindSpore recognises this (``ARF FINISH``),
    once. MindSpore's own flag marks such a process; it also keeps MindSpore from initializing parameters.
    """
    from mindspore import _c_expression

    if _c_expression.is_reboot_node():
        _c_expression.set_is_reboot_node(False)
        raise RuntimeError("ARF FINISH , do next step repair weight.")


class _AscendContext:
    """MindSpore's context module, which reports the device as an Ascend one."""

    def __init__(self, context: ModuleType) -> None:
        self._context = context

    def get_context(self, key: str) -> Any:
        return "Ascend" if key == "device_target" else self._context.get_context(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class _Collectives:
    """MindSpore's CollectiveManager, as far as the clean handler uses it: to resume communication."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def get_instance(self) -> _Collectives:
        return self

    def resume_hccl_comm(self) -> None:
        self._device.resume()


class _Operators:
    """MindSpore's ``ops`` with an AllReduce over this communicator."""

    def __init__(self, ops: ModuleType, device: Device) -> None:
        self._ops = ops
        self._device = device

    def AllReduce(self, *args: Any, **kwargs: Any) -> _AllReduce:
        return _AllReduce(self._device, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ops, name)


class _AllReduce:
    """A sum over the ranks of a group. The sum of the optimizer wrapper's flag also is its barrier before the update.

    Raises ValueError for another operation than the sum, which no rehearsed job needs.
    """

    def __init__(self, device: Device, op: str = "sum", group: str | None = None) -> None:
        if op != "sum":
            raise ValueError(f"the rehearsal's communicator only sums, it does not know {op!r}")
        self._device = device
        self._group = group

    def add_prim_attr(self, name: str, value: Any) -> _AllReduce:
        del name, value
        return self

    def __call__(self, tensor: Any) -> Any:
        from mindspore import Tensor

        return Tensor(self._device.all_reduce(tensor.asnumpy(), self._group))


class _TensorReport:
    """On the device this operator reports the beginning of the optimizer update to the SDK, and records its times."""

    def __init__(self, agent: Agent, memory: Memory) -> None:
        assert agent.barriers is not None
        self._barriers = agent.barriers
        self._memory = memory
        self._at_end = False
        self._tells_sdk = True

    def add_prim_attr(self, name: str, value: Any) -> _TensorReport:
        self._at_end = self._at_end or (name == "optimizer_end" and bool(value))
        # Without a mechanism of the SDK the wrapper marks the update for a snapshot only; there may be no SDK.
        self._tells_sdk = self._tells_sdk and name != "snapshot"
        return self

    def __call__(self, name: str, flag: Any) -> Any:
        del name
        if not self._at_end:
            if self._tells_sdk:
                from mindio_ttp.framework_ttp import tft_start_updating_os

                tft_start_updating_os(-1)
            self._memory.update_begins()
            self._barriers.reach("optimizer.update")
        else:
            self._memory.update_ends()
        return flag
