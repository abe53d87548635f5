"""The stand-in's log: the vendor's names, prefixes and lines, so that one reader serves both."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from datetime import datetime

_LEVELS = {"DEBUG": 0, "INFO": 1, "WARNING": 2, "ERROR": 3}
_STDOUT = 1


class TtpLog:
    """Appends to ``<directory>/ttp_log.log.<pid>``, or to one file for all, or writes to standard output.

    ``environment`` chooses, as for MindIO TFT 7.3: TTP_LOG_MODE (``PER_PROC``, or ``ONLY_ONE``: ``ttp_log.log``),
    TTP_LOG_LEVEL (``DEBUG`` to ``ERROR``, else ``INFO``), TTP_LOG_STDOUT (``1``: no file).
    """

    def __init__(self, directory: str | None, environment: Mapping[str, str] | None = None) -> None:
        settings = environment or {}
        self._least = _LEVELS.get(settings.get("TTP_LOG_LEVEL", ""), _LEVELS["INFO"])
        self._printed = settings.get("TTP_LOG_STDOUT") == "1"
        self._file: int | None = None
        if self._printed:
            self._file = _STDOUT
        elif directory:
            os.makedirs(directory, exist_ok=True)
            name = "ttp_log.log" if settings.get("TTP_LOG_MODE") == "ONLY_ONE" else f"ttp_log.log.{os.getpid()}"
            self._file = os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)

    def info(self, place: str, text: str) -> None:
        """Write an information line; ``place`` is ``TTP controller.cpp:2518`` or alike."""
        self._write("info", place, text)

    def warning(self, place: str, text: str) -> None:
        """Write a warning line."""
        self._write("warning", place, text)

    def error(self, place: str, text: str) -> None:
        """Write an error line."""
        self._write("error", place, text)

    def _write(self, level: str, place: str, text: str) -> None:
        if self._file is None or _LEVELS[level.upper()] < self._least:
            return
        now, thread = f"{datetime.now():%Y-%m-%d %H:%M:%S.%f}", threading.get_native_id()
        start = f"{now} {level} {thread} [{place}]" if self._printed else f"{now} {thread} {level} [{thread}][{place}]"
        os.write(self._file, f"{start} {text}\n".encode())
