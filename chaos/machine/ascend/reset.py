"""The reader of ``npu-smi set -t reset``: after its question come the fields Status and Message, each with a colon.

Status is OK or Fail. Source: npu-smi, command reference (resetting an NPU). No document says whether the tool exits
with 0 after a failed reset, so the answer is read whatever the exit code.
"""

from __future__ import annotations

import re

OK, FAIL = "OK", "Fail"
# The first field may stand on the line of the question: nothing ends that line where the answer came by a pipe.
_FIELD = re.compile(
    r"(?:^|\?[^\n]{0,40}?\)|\][ \t]*:?)[ \t]*(Status|Message)[ \t]*:[ \t]*(\S.*?)[ \t]*\r?$", re.MULTILINE
)
_FAILED = re.compile("fail", re.IGNORECASE)


def read_reset(text: str) -> str | None:
    """Return :data:`OK` or :data:`FAIL`.

    None where the text says neither in the document's words, or both.
    """
    fields = _FIELD.findall(text)
    states = {value.upper() for name, value in fields if name == "Status"}
    if states == {FAIL.upper()}:
        return FAIL
    failed = any(_FAILED.search(value) for name, value in fields if name == "Message")
    return OK if states == {OK} and not failed else None
