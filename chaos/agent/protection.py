"""Records that a rank is protected: its connection to the SDK, and each update that it reports to the SDK.

A rank that starts the SDK's controller is recorded, too.

:mod:`chaos.agent.hooks` records which handlers a rank has registered, since it wraps them anyway.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from chaos.agent.record import Record


def hook_protection(record: Record, module: ModuleType) -> None:
    """Set the hooks in ``mindio_ttp.framework_ttp``, whichever SDK it is."""
    _hook_controller(record, module)
    _hook_connection(record, module)
    _hook_updates(record, module)


def _hook_controller(record: Record, module: ModuleType) -> None:
    start = getattr(module, "tft_start_controller", None)
    if start is None:
        return

    @functools.wraps(start)
    def start_with_agent(*args: Any, **kwargs: Any) -> Any:
        result = start(*args, **kwargs)
        record.write("sdk.controller")
        return result

    module.tft_start_controller = start_with_agent  # type: ignore[attr-defined]


def _hook_connection(record: Record, module: ModuleType) -> None:
    start, destroy = (getattr(module, f"tft_{name}_processor", None) for name in ("start", "destroy"))
    if start is None or destroy is None:
        return

    @functools.wraps(start)
    def start_with_agent(*args: Any, **kwargs: Any) -> Any:
        result = start(*args, **kwargs)
        record.write("sdk.connected")
        return result

    @functools.wraps(destroy)
    def destroy_with_agent(*args: Any, **kwargs: Any) -> Any:
        record.write("sdk.disconnected")  # before the call, which may not return
        return destroy(*args, **kwargs)

    module.tft_start_processor = start_with_agent  # type: ignore[attr-defined]
    module.tft_destroy_processor = destroy_with_agent  # type: ignore[attr-defined]


def _hook_updates(record: Record, module: ModuleType) -> None:
    end = getattr(module, "tft_end_updating_os", None)
    if end is None:
        return
    write = record.step_writer("update.reported")

    @functools.wraps(end)
    def end_with_agent(step: int) -> Any:
        result = end(step)
        write(step)
        return result

    module.tft_end_updating_os = end_with_agent  # type: ignore[attr-defined]
