"""The stand-in's log file: the vendor's name, prefix and lines, so that one reader serves both."""

from __future__ import annotations

import os
import threading
from datetime import datetime


class TtpLog:
    """Appends to ``<directory>/ttp_log.log.<pid>`` (TTP_LOG_PATH with TTP_LOG_MODE PER_PROC, MindIO TFT 7.3)."""

    def __init__(self, directory: str | None) -> None:
        self._file: int | None = None
        if directory:
            os.makedirs(directory, exist_ok=True)
            path = os.path.join(directory, f"ttp_log.log.{os.getpid()}")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)

    def info(self, place: str, text: str) -> None:
        """Write an information line; ``place`` is ``TTP controller.cpp:2518`` or alike."""
        self._write("info", place, text)

    def warning(self, place: str, text: str) -> None:
        """Write a warning line."""
        self._write("warning", place, text)

    def _write(self, level: str, place: str, text: str) -> None:
        if self._file is None:
            return
        thread = threading.get_native_id()
        line = f"{datetime.now():%Y-%m-%d %H:%M:%S.%f} {thread} {level} [{thread}][{place}] {text}\n"
        os.write(self._file, line.encode())
