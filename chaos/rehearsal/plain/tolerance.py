"""Fault tolerance by MindIO TFT, written down for a loop without a framework.

Calls, handlers and their order are those of MindSpore 2.10's ``TrainFaultTolerance``, ``TftHandle`` and the wrapper
round its training.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from chaos.agent.leaving import leave
from chaos.rehearsal.plain.checkpoints import Checkpoints
from chaos.rehearsal.plain.device import PlainDevice
from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.state import FLAG, State

_NEED_SDK = frozenset({"TTP", "UCE", "HCCE", "ARF", "TSP"})
_NEED_REPLICAS = frozenset({"TTP", "UCE", "HCCE", "ARF"})
_ONLINE = frozenset({"UCE", "HCCE", "ARF"})
_PAUSED = frozenset({"TSP", "ARF"})
JOINED = "ARF FINISH , do next step repair weight."
"""The error that ends the first training of a process in a lost one's place."""


def switched_on(environment: dict[str, str]) -> frozenset[str]:
    """Return the mechanisms that MS_ENABLE_TFT names."""
    parts = environment.get("MS_ENABLE_TFT", "").strip("{} ").split(",")
    return frozenset(name.strip() for name, _, on in (part.partition(":") for part in parts) if on.strip() == "1")


def protects(on: frozenset[str]) -> bool:
    """Return whether one of these mechanisms needs the SDK."""
    return bool(on & _NEED_SDK)


def keeps_flag(on: frozenset[str]) -> bool:
    """Return whether the state has the flag that shows whether an update is complete."""
    return bool(on & _NEED_REPLICAS)


class Tolerance:
    """One rank's fault tolerance. ``on`` are the mechanisms that are switched on, one of them of the SDK."""

    def __init__(
        self, on: frozenset[str], device: PlainDevice, state: State, mesh: Mesh, checkpoints: Checkpoints
    ) -> None:
        from mindio_ttp import framework_ttp

        self.joins = False
        self._tft: Any = framework_ttp
        self._on = on
        self._device = device
        self._state = state
        self._mesh = mesh
        self._checkpoints = checkpoints
        self._hosts = mesh.rank == 0 and not os.environ.get("MINDX_TASK_ID")
        self._sent_replicas = False
        self._lost_memory = False

    # TftHandle: controller and processor.

    def start(self) -> None:
        """Start the controller where this rank hosts it, and the processor.

        The new process of a lost rank returns from here when the others have rebuilt their groups; then ``joins`` is
        true. Raises RuntimeError where they do not.
        """
        tft, rank, ranks = self._tft, self._mesh.rank, self._mesh.ranks
        address, port = os.environ["MS_TFT_IP"], int(os.environ["MS_TFT_PORT"])
        arf = "ARF" in self._on
        if self._hosts:
            if arf:
                self._choose_without_agent()
            tft.tft_init_controller(rank, ranks, False, enable_arf=arf)
            tft.tft_start_controller(address, port, False, "")
        tft.tft_init_processor(rank, ranks, False, False, "", enable_arf=arf)
        tft.tft_start_processor(address, port)
        if tft.tft_is_reboot_node():
            tft.tft_report_error(tft.ReportState.RS_INIT_FINISH.value)
            tft.tft_get_reboot_type()
            if tft.tft_wait_next_action() != tft.Action.RETRY.value:
                raise RuntimeError("ARF init failed!")
            self.joins = True

    def _choose_without_agent(self) -> None:
        """Take the last offered strategy without a cluster agent, as MindSpore does in rank 0."""
        from mindio_ttp import controller_ttp

        def stop(lost: Any) -> int:
            controller_ttp.tft_notify_controller_stop_train(lost)
            return 0

        def confirm(code: int, text: str, lost: Any) -> int:
            controller_ttp.tft_notify_controller_on_global_rank(lost)
            return 0

        def choose(lost: Any, offered: Any) -> int:
            controller_ttp.tft_notify_controller_change_strategy(offered[-1])
            return 0

        def fall_back(code: int, text: str, lost: Any, strategy: str) -> int:
            if code:
                controller_ttp.tft_notify_controller_change_strategy("dump")
            return 0

        controller_ttp.tft_register_mindx_callback("report_fault_ranks", stop)
        controller_ttp.tft_register_mindx_callback("report_stop_complete", confirm)
        controller_ttp.tft_register_mindx_callback("report_strategies", choose)
        controller_ttp.tft_register_mindx_callback("report_result", fall_back)

    def register(self) -> None:
        """Register the handlers."""
        tft = self._tft
        if self._on & _NEED_REPLICAS:
            tft.tft_register_save_ckpt_handler(self._save, self)
            tft.tft_register_rename_handler(self._rename, self)
            tft.tft_register_exit_handler(self._exit, self)
            tft.tft_register_stop_handler(self._stop, self)
            tft.tft_register_clean_handler(self._clean, self)
            tft.tft_register_repair_handler(self._repair, self)
            tft.tft_register_rebuild_group_handler(self._rebuild, self)
        if "TSP" in self._on:
            tft.tft_register_stream_sync_handler(lambda: None, self)

    def end(self) -> None:
        """Note that training has come to its end."""
        self._device.tell_trained()
        if not self._on & _NEED_REPLICAS:
            return
        if self._hosts:
            self._tft.tft_destroy_controller()
        self._tft.tft_destroy_processor()

    # The callbacks and the optimizer's wrapper.

    def begin(self) -> None:
        """Note that training begins, for the first time or after a repair."""
        if self._on & _NEED_REPLICAS:
            self._tft.tft_set_step_args(self._state)

    def begin_update(self) -> None:
        """Begin the update: the gradients are there and the optimizer is about to write.

        Waits until all ranks have come so far.
        """
        if self._on & _NEED_REPLICAS:
            flag = self._state.parameters[FLAG]
            flag[...] = self._device.reduce(flag)
            self._tft.tft_start_updating_os(-1)

    def end_step(self) -> None:
        """End the step: report its update, and pause where a pause is requested."""
        step = self._state.steps
        if self._on & _NEED_REPLICAS:
            if not self._sent_replicas:
                self._sent_replicas = True
                self._tell_replicas()
            self._tft.tft_end_updating_os(step)
            self._state.parameters[FLAG][...] = 1
        if self._on & _PAUSED:
            self._tft.tft_pause_train(step)

    def _tell_replicas(self) -> None:
        group = list(self._mesh.replicas)
        groups = [{"type": 1, "rank_list": group, "replica_cnt": len(group), "replica_shift": 0}]
        self._tft.tft_set_optimizer_replica(self._mesh.rank, groups)

    # The wrapper round the training.

    def recover(self, error: RuntimeError) -> int:
        """Report an error and wait for the repair. Returns the step after which training goes on.

        Raises the error where there is no repair; then the process ends, or is ended by the SDK before that.
        """
        tft, states = self._tft, self._tft.ReportState
        text = str(error)
        if not self._on & _ONLINE:
            self._give_up(error)
        if "UCEError" in text:
            self._lost_memory = True
            if "error_code=507054" in text and not tft.tft_can_do_uce_repair(*self._device.update_times()):
                self._give_up(error)
            tft.tft_report_error(states.RS_UCE.value)
        elif "HCCEError" in text or "SuspectRemoteError" in text:
            tft.tft_report_error(states.RS_HCCL_FAILED.value)
        elif "ForceStopError" in text:
            tft.tft_report_error(states.RS_NORMAL.value)
        elif "ARF FINISH" in text:
            tft.tft_report_error(states.RS_PREREPAIR_FINISH.value)
        elif "STEP FINISH" in text:
            tft.tft_report_error(states.RS_STEP_FINISH.value)
        else:
            self._give_up(error)
        if tft.tft_wait_next_action() == tft.Action.EXIT.value:
            raise error
        step = int(tft.tft_get_repair_step())
        _log(f"uce wrapper caught repair finish REPAIR STEP: {step} batch_num:{self._checkpoints.per_epoch}")
        return step

    def _give_up(self, error: BaseException) -> None:
        self.report_unknown(error)
        raise error

    def report_unknown(self, error: BaseException) -> None:
        """Report an error that has no repair.

        It ends this process by the SDK, after a checkpoint where one can be saved.
        """
        _log(f"{type(error).__name__}: {error}")
        self._tft.tft_report_error(self._tft.ReportState.RS_UNKNOWN.value)

    # Handlers.

    def _save(self, step: int, info: Any, arguments: Any, context: Any) -> None:
        _log("Enter _save_checkpoint_on_failure function")
        self._checkpoints.save_end_of_life(step)
        _log("Finish _save_checkpoint_on_failure function")

    def _rename(self, step: int, context: Any) -> None:
        _log("Enter _rename_save_result function")
        self._checkpoints.rename(step)
        _log("Finish _rename_save_result function")

    def _exit(self, context: Any) -> None:
        _log("Enter mindio ttp exit process, which means other ranks occur exception, check other ranks' logs!")
        self._device.tell_exiting()
        leave(1, "Finish mindio ttp exit process: this process ends with code 1")

    def _stop(self, arguments: Any, context: Any) -> None:
        _log("Enter _tft_stop_callback device_id: 0")
        if not self._lost_memory and not self._state.consistent:
            raise RuntimeError("Can't stop device, because training parameters are left in inconsistent state!")
        self._lost_memory = False
        self._device.stop()
        if self._tft.tft_get_repair_type() == "recover":
            self._tft.tft_reset_limit_step()
        _log("Finish _tft_stop_callback")

    def _clean(self, is_uce: bool, arguments: Any, context: Any) -> int:
        _log("Enter _tft_clean_callback, device id:0")
        answers = {"RS_UCE_HIGHLEVEL": 0, "RS_UCE_LOWLEVEL": 2}
        answer = answers.get(self._device.memory_strategy(), 1) if is_uce else 0
        if self._tft.tft_get_repair_type() == "retry":
            self._device.resume()
        _log(f"Finish _tft_clean_callback, ret: {answer}")
        return answer

    def _rebuild(self, lost: Any, arguments: Any, context: Any) -> None:
        _log("Enter _tft_rebuild_groups, device id: 0")
        self._device.leave()
        self._device.rebuild()
        _log("Enter _tft_rebuild_groups ok ")

    def _repair(self, step: int, rebuild: bool, lost: Any, info: Any, arguments: Any, context: Any) -> None:
        kinds, kind = self._tft.RepairType, info["repair_type"]
        _log(f"Enter _tft_repair_callback repair type: {kind}")
        parameters = list(self._state.parameters.values())
        if kind == kinds.RT_SEND.value:
            for source, target in zip(info["src"], info["dst"]):
                self._device.copy(parameters, source, target)
        elif kind in (kinds.RT_UCE_HIGHLEVEL.value, kinds.RT_RECV_REPAIR.value):
            self._device.copy(parameters, info["src"][0], info["dst"][0])
        _log("Finish _tft_repair_callback")


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
