"""Reader of the logs of MindIO TFT (``ttp_log.log.<pid>``, or a worker's log when TTP_LOG_STDOUT is set).

Prefixes: ``2026-11-21 01:32:19.903248 30710 warning [30710][TTP controller.cpp:2518] `` in a file, where the number is
a *thread* (the process is in the file's name); ``... info [1306][3808][PYH ttp_controller.py:70] `` for the Python
part; ``2025-04-07 15:34:27.363613 info 1879138 [TTP controller.cpp:1512] `` in the documents of MindFormers. ``ACC`` is
the link layer. Facts: logs of four ranks with MindIO TFT, and its documents.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.patterns import find_event
from chaos.observe.logs.prefixed import PrefixedReader
from chaos.observe.logs.ttp.controller_messages import AGENT, CONTROLLER
from chaos.observe.logs.ttp.failures import FAILED, read_failure, with_numbers
from chaos.observe.logs.ttp.link_messages import LINK
from chaos.observe.logs.ttp.processor_messages import PROCESSOR, PYTHON

_PREFIX = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d)\.(?P<micro>\d{6}) "
    r"(?:(?P<thread>\d{1,10}) (?P<level>[a-z]+)|(?P<level2>[a-z]+) (?P<thread2>\d{1,10})) "
    r"(?:\[\d{1,20}\]){0,3}\[(?P<part>TTP|PYH|ACC) [\w.]+:\d+\] "
)
_TABLES = {"TTP": CONTROLLER + PROCESSOR + AGENT + FAILED, "PYH": PYTHON, "ACC": LINK}
_QUIET = frozenset({"trace", "debug", "info", "warning"})
_LONGEST = 400

CHATTER = "acc.chatter"
"""The kind of messages of the link layer about itself, which say nothing about the job."""

MESSAGES = (*CONTROLLER, *PROCESSOR, *AGENT, *FAILED, *PYTHON)
"""Messages behind the prefix of a line, except those of the link layer."""


class TtpLogReader(PrefixedReader):
    """Lines of MindIO TFT. ``tz`` is the zone of the times in the log, None the local one.

    The kinds are ``ttp.*`` and ``acc.*``. The field ``thread`` is the thread that wrote the line. The SDK writes -1 for
    a step that it does not know and for a controller outside the ranks: such an event has no step, or no rank. A record
    of level error is always an event: ``ttp.failed`` or ``ttp.error`` if its form is unknown. A message of the link
    layer about itself below that level is ``acc.chatter``.
    """

    name = "ttp"
    prefix = _PREFIX

    def event_of(self, prefix: re.Match[str], message: str) -> LogEvent | None:
        """Return the event of a message and the prefix before it."""
        wall_ns = self._wall.ns(prefix["date"], prefix["time"], int(prefix["micro"]))
        level, part = prefix["level"] or prefix["level2"], prefix["part"]
        event = find_event(_TABLES[part], message, wall_ns, None)
        if event is None:
            event = read_failure("acc" if part == "ACC" else "ttp", level, message, wall_ns)
        if event is None and part == "ACC" and level in _QUIET:
            event = LogEvent(CHATTER, wall_ns, fields={"what_text": message[:_LONGEST]})
        if event is None:
            return None
        event = with_numbers(event, message)
        fields = {
            name: _ranks(value) if name in ("ranks", "group", "dp") else value for name, value in event.fields.items()
        }
        return replace(event, fields={**fields, "thread": int(prefix["thread"] or prefix["thread2"])})


def _ranks(value: Any) -> Any:
    """Return a list of ranks without -1, which is no rank of the job."""
    if not isinstance(value, list):
        return value
    return [_ranks(item) for item in value if not (isinstance(item, int) and item < 0)]
