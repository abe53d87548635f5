"""Fault tolerance by MindIO TFT in PyTorch mode, for a loop like Megatron's.

Calls, handlers and their order are those of MindSpeed-LLM's ``high_availability`` (c77308a), written for a model that
every rank holds whole. MindSpeed-LLM itself is no part of a rehearsal.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from chaos.rehearsal.torch.checkpoints import Checkpoints
from chaos.rehearsal.torch.device import TorchDevice
from chaos.rehearsal.torch.model import State

_OK, _FAILED, _NO_REBUILD = 0, 1, 2
_LOW_LEVEL, _HIGH_LEVEL = 2, 3
"""The answers of ``check_uce_in_memory``: no memory was lost, or memory in use was."""


class Tolerance:
    """One rank's fault tolerance."""

    def __init__(
        self, device: TorchDevice, state: State, checkpoints: Checkpoints, *, repairs: bool, reboots: bool
    ) -> None:
        import torch
        import torch_npu
        from mindio_ttp import framework_ttp, utils

        self._tft: Any = framework_ttp
        self._times: Any = utils
        self._npu: Any = torch_npu.npu
        self._distributed: Any = torch.distributed
        self._device = device
        self._state = state
        self._checkpoints = checkpoints
        self._repairs = repairs
        self._reboots = reboots
        self.joins = False

    def start(self) -> None:
        """Start the controller where this rank hosts it, and the processor; before the process group."""
        rank, ranks = self._device.rank, self._device.ranks
        address, port = os.environ["TTP_ADDR"], int(os.environ["TTP_PORT"])
        if rank == 0 and "MINDX_TASK_ID" not in os.environ:
            self._tft.tft_init_controller(rank, ranks, False, self._reboots, False)
            self._tft.tft_start_controller(address, port, False, "")
        self._tft.tft_init_processor(rank, ranks, False, False, "", self._repairs, self._reboots, False)
        self._tft.tft_start_processor(address, port)
        self.joins = self._tft.tft_is_reboot_node()

    def register(self) -> None:
        """Report the replicas and register the handlers; after the process group."""
        rank, everyone = self._device.rank, list(range(self._device.ranks))
        replicas = {"rank_list": everyone, "replica_cnt": len(everyone), "replica_shift": 0}
        self._tft.tft_set_optimizer_replica(rank, [replicas])
        self._tft.tft_set_dp_group_info(rank, everyone)
        self._tft.tft_register_save_ckpt_handler(self._save)
        self._tft.tft_register_rename_handler(self._rename)
        self._tft.tft_register_stop_handler(self._stop)
        self._tft.tft_register_clean_handler(self._clean)
        self._tft.tft_register_repair_handler(self._repair)
        self._tft.tft_register_rollback_handler(self._rollback)
        self._tft.tft_register_rebuild_group_handler(self._rebuild)
        self._tft.tft_register_stream_sync_handler(self._synchronize)
        self._tft.set_mindio_export_version("MindSpeed-LLM")

    # The optimizer's wrapper and the end of a step.

    def begin_update(self) -> None:
        """Begin the update: the gradients are there and the optimizer is about to write."""
        self._tft.tft_start_updating_os(-1)
        self._times.tft_set_update_start_time(time.monotonic_ns() // 1000)

    def end_update(self) -> None:
        """End the update."""
        self._times.tft_set_update_end_time(time.monotonic_ns() // 1000)
        self._tft.tft_end_updating_os(self._state.iteration)

    def end_step(self) -> None:
        """End the step: pause where a pause is requested."""
        self._tft.tft_pause_train(self._state.iteration)

    # Handlers.

    def _save(self, step: int, info: Any, arguments: Any, context: Any) -> None:
        rank = self._device.rank
        _log(f"rank {rank} is saving checkpoint at iteration {step:7d} to the save directory in torch format")
        self._checkpoints.save_end_of_life(step)
        _log(f"rank {rank} successfully saved checkpoint at iteration {step:7d}, save disk: True")

    def _rename(self, step: int, context: Any) -> None:
        self._checkpoints.rename(step)
        _log(f"rank {self._device.rank} rename success")

    def _stop(self, arguments: Any, context: Any) -> None:
        if self._npu.stop_device(self._npu.current_device()) not in (None, _OK):
            raise RuntimeError("stop failed, end stop callback")

    def _clean(self, is_uce: bool, arguments: Any, context: Any) -> int:
        answer, device, began = _OK, self._npu.current_device(), time.monotonic()
        if is_uce:
            lost = self._npu.check_uce_in_memory(device)
            answer = {_LOW_LEVEL: _NO_REBUILD, _HIGH_LEVEL: _OK}.get(lost, _FAILED)
        kind = self._tft.tft_get_repair_type()
        if kind == "retry":
            self._distributed.reinit_process_group(group=None, rebuild_link=False)
        self._npu.restart_device(device)
        cost = time.monotonic() - began
        _log(f"[clean] rank:{self._device.rank}, type:{kind}, cost:{cost:.3f}s, ret:{answer}")
        return answer

    def _rebuild(self, lost: Any, arguments: Any, context: Any) -> None:
        _log(f"1.1 rank:{self._device.rank} start rebuild all process group")
        self._distributed.reinit_process_group(group=None, rebuild_link=True)
        _log(f"[rebuild] rank: {self._device.rank}, rebuild all process group success")

    def _repair(self, step: int, rebuild: bool, lost: Any, info: Any, arguments: Any, context: Any) -> None:
        kinds, kind = self._tft.RepairType, info["repair_type"]
        _log(f"[repair] rank {self._device.rank}, repair type:{kind}")
        if kind == kinds.RT_SEND.value:
            for source, target in zip(info["src"], info["dst"]):
                self._device.copy(self._state.tensors(), source, target)
        elif kind in (kinds.RT_UCE_HIGHLEVEL.value, kinds.RT_RECV_REPAIR.value):
            self._device.copy(self._state.tensors(), info["src"][0], info["dst"][0])

    def _rollback(self, step: int, arguments: Any, context: Any) -> None:
        began = time.monotonic()
        self._state.iteration = step
        cost = time.monotonic() - began
        _log(f"[rollback] rank {self._device.rank} rollback total time consumed:{cost:.3f}s")

    def _synchronize(self) -> None:
        self._npu.synchronize()


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
