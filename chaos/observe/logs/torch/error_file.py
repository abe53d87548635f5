"""``error.json``: what torchrun's ``record`` writes about the uncaught exception of a rank.

The file is one JSON object without a line feed: ``{"message": {"message": "ValueError: …", "extraInfo":
{"py_callstack": "…", "timestamp": "1795828855"}}}``. It names neither the rank nor the process. Its texts come from the
job and are data. Facts: runs of torch 2.13.
"""

from __future__ import annotations

import json
import re
from typing import Any

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.traceback_calls import last_traceback

BEGIN = '{"message": {"message": '
"""The beginning of every such file."""

_LONGEST = 400
_SECONDS = re.compile(r"[0-9]{1,12}")
_LATEST = 253_402_300_799
"""The last second of the year 9999."""


def read_error_file(text: str) -> LogEvent | None:
    """Return the event ``error.file`` of the whole content of such a file; None for any other text.

    Its fields are the class of the exception (``error_text``), its text (``reason_text``) and the latest call, as
    ``place_text``.
    """
    if not text.startswith(BEGIN):
        return None
    try:
        message = json.loads(text)["message"]
        said, extra = message["message"], message["extraInfo"]
        stack, stamp = extra["py_callstack"], extra["timestamp"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not (isinstance(said, str) and isinstance(stack, str)):
        return None
    error, _, reason = said.partition(": ")
    fields: dict[str, Any] = {"error_text": error[:_LONGEST], "reason_text": reason[:_LONGEST]}
    traceback = last_traceback(stack.split("\n"))
    if traceback is not None and traceback.frames:
        frame = traceback.frames[0]
        fields["place_text"] = f"{frame.file}:{frame.line}"
    return LogEvent("error.file", _moment(stamp), fields=fields)


def _moment(stamp: object) -> int | None:
    """Return the nanoseconds of whole seconds since the epoch."""
    text = str(stamp)
    if isinstance(stamp, bool) or not isinstance(stamp, int | str) or not _SECONDS.fullmatch(text):
        return None
    return int(text) * 1_000_000_000 if int(text) <= _LATEST else None
