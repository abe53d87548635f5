"""The part of MindIO ACP's interface that MindSpore uses (``mindspore.common.file_system``).

On the job's path only where ``job.storage.memory`` is set. The implementation is in :mod:`chaos.rehearsal.acp.store`.
"""

from __future__ import annotations

import os
from typing import Any

from chaos.agent.configuration import place_of, read_configuration
from chaos.rehearsal.acp.store import Store

_store: Store | None = None


def initialize(server_info: dict[str, str] | None = None) -> int:
    """Find the run's store. Returns 0 as the vendor's success; another number where the run has none."""
    del server_info
    global _store
    settings = read_configuration(os.environ["CHAOS_AGENT"]).settings.get("storage", {})
    rank = place_of(os.environ).rank
    if rank is None or not settings.get("memory"):
        return 1
    _store = Store(settings["memory"], rank, settings.get("mb_per_second"))
    return 0


def create_file(path: str, mode: int = 0o600) -> Any:
    """Return a file to write a checkpoint to."""
    del mode
    return _running().create(path)


def open_file(path: str) -> Any:
    """Return a file to read a checkpoint from."""
    return _running().open(path)


def _running() -> Store:
    if _store is None:
        raise RuntimeError("mindio_acp: initialize has not been called, or has failed")
    return _store
