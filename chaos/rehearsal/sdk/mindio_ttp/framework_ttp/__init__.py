"""The interface of MindIO TFT 7.3 (``mindio_ttp.framework_ttp``), as far as saving, repair and replacement need it.

The interface is a module with one processor a process, so this module holds it. The implementation is in
:mod:`chaos.rehearsal.ttp`. The controller's functions are those of :mod:`mindio_ttp.controller_ttp`.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from enum import Enum
from typing import Any, Callable

from chaos.rehearsal.ttp.own_run import configuration, log, secret, timings
from chaos.rehearsal.ttp.processor import Handler, Processor
from mindio_ttp.controller_ttp import tft_destroy_controller as tft_destroy_controller
from mindio_ttp.controller_ttp import tft_init_controller as tft_init_controller
from mindio_ttp.controller_ttp import tft_start_controller as tft_start_controller
from mindio_ttp.framework_ttp import torchrun_patch
from mindio_ttp.framework_ttp.ttp_decorator import get_mindio_export_version as get_mindio_export_version
from mindio_ttp.framework_ttp.ttp_decorator import set_mindio_export_version as set_mindio_export_version
from mindio_ttp.framework_ttp.ttp_decorator import tft_exception_handler as tft_exception_handler
from mindio_ttp.framework_ttp.ttp_decorator import tft_register_exception_handler as tft_register_exception_handler
from mindio_ttp.utils import tft_get_update_start_end_time


class ReportState(Enum):
    """A rank's report of its own state."""

    RS_NORMAL = 0
    RS_RETRY = 1
    RS_UCE = 2
    RS_UCE_CORRUPTED = 3
    RS_HCCL_FAILED = 4
    RS_INIT_FINISH = 5
    RS_PREREPAIR_FINISH = 6
    RS_STEP_FINISH = 7
    RS_UNKNOWN = 8


class RepairType(Enum):
    """A rank's part in a repair."""

    RT_SEND = 0
    RT_UCE_HIGHLEVEL = 1
    RT_UCE_LOWLEVEL = 2
    RT_RECV_REPAIR = 3
    RT_ROLLBACK = 4
    RT_LOAD_CKPT = 5
    RT_LOAD_REBUILD = 6


class Action(Enum):
    """A rank's next action."""

    RETRY = 0
    EXIT = 1


class OptimizerType(Enum):
    """The optimizer that a replica list belongs to."""

    ATTENTION = 0
    MOE = 1


_handlers: dict[str, Handler] = {}
_processor: Processor | None = None


def for_mindspore() -> bool:
    """Return whether this process works for MindSpore; for PyTorch the training waits twice in a repair."""
    return os.environ.get("MINDIO_FOR_MINDSPORE") == "1"


def _running() -> Processor:
    if _processor is None:
        raise RuntimeError("tft_init_processor has not been called")
    return _processor


def own_rank() -> int:
    """Return the rank of this process's processor; for the parts of this package."""
    return _running().rank


def tft_init_processor(
    rank: int,
    world_size: int,
    enable_local_copy: bool,
    enable_tls: bool = True,
    tls_info: str = "",
    enable_uce: bool = True,
    enable_arf: bool = False,
    enable_zit: bool = False,
) -> None:
    """Make this rank's processor; installs no-op handlers for SIGTERM and SIGINT, as the vendor's does."""
    del enable_local_copy, enable_tls, tls_info, enable_uce, enable_zit
    global _processor
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    settings = configuration()
    _processor = Processor(
        rank,
        run=settings.run,
        secret=secret(settings),
        timings=timings(settings, world_size),
        log=log(),
        handlers=_handlers,
        arf=enable_arf,
        cleans_before_dump=lambda: os.environ.get("TTP_STOP_CLEAN_BEFORE_DUMP") == "1",
        for_pytorch=not for_mindspore(),
    )


def tft_start_processor(master_ip: str, port: int, local_ip: str = "") -> None:
    """Connect this rank to the controller.

    For PyTorch, the new process of a lost rank returns when the others are about to rebuild their groups.
    """
    del local_ip
    _running().start(master_ip, port)
    atexit.register(_leave_in_order)
    if _running().reboot and not for_mindspore():
        _running().report_error(ReportState.RS_INIT_FINISH.value)
        _running().wait_next_action()


def _leave_in_order() -> None:
    """Announce the end of this process, unless an error ends it: with TSP alone, MindSpore destroys no processor."""
    if _processor is not None and not hasattr(sys, "last_type"):
        _processor.leave()


def tft_destroy_processor() -> None:
    """Stop this rank's processor."""
    _running().leave()


def tft_set_optimizer_replica(rank: int, replica_info: list[dict[str, Any]]) -> None:
    """Report the replica group of this rank."""
    del rank
    for entry in replica_info:
        _running().report_replicas(list(entry["rank_list"]))


def tft_set_dp_group_info(rank: int, ranks: list[int]) -> None:
    """Take the data-parallel group of this rank: the vendor's SDK needs it for elastic training, this one does not."""
    del rank, ranks


def tft_set_step_args(args: Any) -> None:
    """Keep the handlers' argument ``args``."""
    _running().set_step_arguments(args)


def tft_start_updating_os(backup_step: int = -1) -> None:
    """Note that the optimizer update begins."""
    del backup_step
    _running().begin_update()


def tft_end_updating_os(step: int) -> None:
    """Note that the optimizer update of ``step`` is done."""
    _running().end_update(step)


def tft_start_copy_os() -> None:
    """Note that the optimizer begins to copy its state within the device."""
    _running().begin_copy()


def tft_pause_train(cur_step: int) -> None:
    """Note that training has finished ``cur_step``; block while a pause is requested."""
    if cur_step >= 0:
        _running().pause_point.reach(cur_step)


def tft_report_error(state: int, error_code: str = "") -> None:
    """Report an error of this rank; an unknown one blocks until the process is ended."""
    del error_code
    _running().report_error(state)


def tft_wait_next_action() -> int:
    """Wait for the end of the repair, or a part of it: RETRY.

    An exit ends the process instead, or is returned. For PyTorch the wait ends when the device is clean, and
    :func:`tft_wait_repair_action` waits for the rest.
    """
    if not for_mindspore():
        return Action(_running().wait_clean()).value
    return Action(_running().wait_next_action()).value


def tft_wait_repair_action() -> int:
    """Wait until all ranks go on after a repair: RETRY. Only for PyTorch."""
    return Action(_running().wait_next_action()).value


def tft_get_repair_step() -> int:
    """Return the step that all ranks hold after the repair."""
    return _running().repair_step


def tft_report_load_ckpt_step(step: int) -> None:
    """Report that this rank has loaded a checkpoint of ``step`` in a repair, the step to go on from."""
    if step <= 0:
        raise RuntimeError(f"a loaded checkpoint is of step 1 or later, not of {step}")
    _running().repair_step = step


def tft_get_repair_type() -> str:
    """Return the present repair: ``retry`` or ``recover``; ``unknow`` when there is none."""
    return _running().repair_type


def tft_reset_limit_step() -> None:
    """Forget the locked step. The stop itself wakes a rank that waits there, and going on unlocks it."""


def tft_can_do_uce_repair(hbm_error_time: int, start: int | None = None, end: int | None = None) -> bool:
    """Return whether memory that failed at that time can be repaired: only if the optimizer's update was over by then.

    At an unknown time (0) the update was not over. For PyTorch the times of the update are those of
    ``mindio_ttp.utils``.
    """
    if start is None or end is None:
        start, end = tft_get_update_start_end_time()
    return 0 < start <= end < hbm_error_time


def tft_is_reboot_node() -> bool:
    """Return whether this process replaces a dead one."""
    return _running().reboot


def tft_get_reboot_type() -> str:
    """Return how this process, which replaces another, gets its state."""
    return "arf"


def _registration(name: str) -> Callable[..., None]:
    def register(function: Callable[..., Any], context: Any = None) -> None:
        _handlers[name] = (function, context)

    register.__name__ = f"tft_register_{name}_handler"
    return register


tft_register_save_ckpt_handler = _registration("save_ckpt")
tft_register_rename_handler = _registration("rename")
tft_register_exit_handler = _registration("exit")
tft_register_stop_handler = _registration("stop")
tft_register_clean_handler = _registration("clean")
tft_register_repair_handler = _registration("repair")
tft_register_rollback_handler = _registration("rollback")
tft_register_rebuild_group_handler = _registration("rebuild_group")
tft_register_stream_sync_handler = _registration("stream_sync")

torchrun_patch.apply()
