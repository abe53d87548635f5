"""The wrapper around the training of PyTorch (``mindio_ttp.framework_ttp.ttp_decorator``): reports, waits, trains on.

Which errors it repairs, and the order of reports and waits, are those of MindIO TFT 7.3. The training's own handlers
repair and roll back meanwhile, and the training function is called again with the same arguments.
"""

from __future__ import annotations

import functools
import gc
import os
import threading
from typing import Any, Callable

from chaos.rehearsal.ttp.own_run import log

FRAMEWORKS = ("MindSpeed", "MindSpeed-LLM")

_STATES = {
    "UCE ERROR": "RS_UCE",
    "HBM MULTI BIT ECC": "RS_UCE",
    "FORCE STOP": "RS_NORMAL",
    "HCCL OP RETRY FAILED": "RS_HCCL_FAILED",
    "SUSPECT REMOTE ERROR": "RS_HCCL_FAILED",
    "UB LINK ERROR": "RS_HCCL_FAILED",
    "HCCS LINK ERROR": "RS_HCCL_FAILED",
    "ARF FINISH": "RS_PREREPAIR_FINISH",
    "STEP FINISH": "RS_STEP_FINISH",
}
"""Text of a RuntimeError → the state that is reported; any other error is RS_UNKNOWN."""

_AT_ONCE = ("ARF FINISH", "STEP FINISH")
"""Ends of a training that wait for no stop: the device was stopped before."""

_handlers: dict[str, tuple[str, Callable[..., Any]]] = {}
_version = ""


def set_mindio_export_version(framework: str) -> None:
    """Name the framework. From then on a rank stops and cleans its device before it saves a last checkpoint."""
    global _version
    if framework not in FRAMEWORKS:
        raise ValueError(f"this framework: {framework} is not supported by mindio tft now")
    _version = framework
    os.environ["TTP_STOP_CLEAN_BEFORE_DUMP"] = "1"


def get_mindio_export_version() -> str:
    """Return the framework that was named."""
    return _version


def tft_register_exception_handler(text: str, state: str, handler: Callable[..., Any]) -> None:
    """Report an error with this text as ``state``, after a call of ``handler`` with the error."""
    _handlers[text] = (state, handler)


def tft_exception_handler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the training function: it is called again after each repair."""
    if not callable(function):
        raise TypeError("function must be callable")

    @functools.wraps(function)
    def train(*args: Any, **kwargs: Any) -> Any:
        while True:
            try:
                result = function(*args, **kwargs)
            except RuntimeError as error:
                _report(error)
            except Exception:
                _give_up()
                raise
            else:
                _end()
                return result
            gc.collect()
            _wait_for_repair()

    return train


def _report(error: RuntimeError) -> None:
    """Report an error and wait until the device is clean. Raises the error where nothing can be repaired."""
    from mindio_ttp import framework_ttp as tft

    text = str(error)
    for known, (state, handler) in _handlers.items():
        if known in text:
            handler(error)
            _report_state(known, state)
            return
    mark = next((mark for mark in _STATES if mark in text), None)
    if mark is None:
        _give_up()
        raise error
    if mark == "HBM MULTI BIT ECC" and not tft.tft_can_do_uce_repair(_error_time(text)):
        _report_state(mark, "RS_UCE_CORRUPTED")
    else:
        _report_state(mark, _STATES[mark])


def _report_state(mark: str, state: str) -> None:
    from mindio_ttp import framework_ttp as tft

    log().warning("PYH ttp_decorator.py:1010", f"rank:{tft.own_rank()} catch {mark} exception")
    tft.tft_report_error(tft.ReportState[state].value)
    if mark not in _AT_ONCE:
        _obey(tft.tft_wait_next_action())


def _wait_for_repair() -> None:
    from mindio_ttp import framework_ttp as tft

    _obey(tft.tft_wait_repair_action())


def _obey(action: int) -> None:
    """Go on by RETRY. By EXIT this process is about to be ended, by the thread that the order came to."""
    from mindio_ttp import framework_ttp as tft

    if action != tft.Action.RETRY.value:
        threading.Event().wait()


def _give_up() -> None:
    """Report an error that has no repair; the process ends meanwhile, or nobody is left who could end it."""
    from mindio_ttp import framework_ttp as tft

    tft.tft_report_error(tft.ReportState.RS_UNKNOWN.value)


def _end() -> None:
    from mindio_ttp import framework_ttp as tft

    if tft.own_rank() == 0 and "MINDX_TASK_ID" not in os.environ:
        tft.tft_destroy_controller()
    tft.tft_destroy_processor()


def _error_time(text: str) -> int:
    """Return the time of an error of the memory, in microseconds; 0 where its text has none."""
    _, found, rest = text.partition("time us=")
    digits = rest.strip().split(" ")[0].rstrip(".,") if found else ""
    return int(digits) if digits.isdecimal() else 0
