"""Reader of Ascend's own logs: plog (host side) and device logs, and the error codes that CANN prints elsewhere.

A line begins ``[ERROR] HCCL(11262,python3):2023-01-31-03:00:14.192.200 [exchanger_network.cc:237][11262]…``. Lines of
MindSpore look alike, with another parenthesis: ``DISTRIBUTED(5918,7f34b5b9e6c0,python)``, ``ME(5903:1397,Main)``;
MindSpore's reader reads these, and finds here (``of_framework``) their statements about a device. Error codes also
appear in the log of a worker: ``EI0002: …`` and ``…(EI0013): …``. Codes of the runtime (``507053``) are those of ACL
(:mod:`chaos.observe.logs.acl_codes`). Facts: the documents of CANN 8, MindCluster's fault diagnosis, CANN's errors in
MindSpore's documents, the published source of the runtime, and logs that users have published. No hardware
was available here: single lines of that form are tested, no whole file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from chaos.observe.logs.acl_codes import ACL_ERRORS, acl_code
from chaos.observe.logs.framework_prefix import Prefixed, has_prefix
from chaos.observe.logs.hccl_cluster import MEMBERS, SUSPICIONS
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.patterns import Known, find_event, known
from chaos.observe.logs.prefixed import PrefixedReader

# The parenthesis holds a process and its name: no second comma, no colon.
_PREFIX = re.compile(
    r"\[(?P<level>DEBUG|INFO|WARNING|ERROR|EVENT|TRACE|OPLOG|NULL)\] {0,4}(?P<module>[A-Z][A-Z0-9_]{1,20})"
    r"\((?P<pid>-?\d{1,10})(?:,(?P<process>[^,:()]{0,64}))?\):"
    r"(?P<date>\d{4}-\d\d-\d\d)-(?P<time>\d\d:\d\d:\d\d)\.(?P<milli>\d{3})\.(?P<micro>\d{3}) ?"
)
_CODE = re.compile(r"(?:^|[(\]]) ?(?P<code>E[A-Z]\d{4})\)?: (?P<text>.{0,400})")
# Without the prefix of these logs: at the beginning only, perhaps after a process, a time and a name of the error.
_TIME = r"(?P<date>\d{4}-\d\d-\d\d)-(?P<time>\d\d:\d\d:\d\d)\.(?P<milli>\d{3})\.\d{3} "
_BARE = re.compile(
    rf"(?:\[PID: (?P<pid>\d{{1,10}})\] {_TIME}\w{{1,60}}\()?(?P<code>E[A-Z]\d{{4}})\)?: (?P<text>.{{0,400}})"
)
_OWN = re.compile(rf"(?:\[PID: (?P<pid>\d{{1,10}})\] )?{_TIME}")

_CODES = {"EI0002": "device.notify_timeout", "EI0006": "device.socket_timeout", "EI0013": "device.cqe_error"}

# A number is a code only where it is called one: other programs, and other lines of CANN's, have numbers of all kinds.
# What MindSpore makes of a code itself (UCEError error occurs when execute, error_code=507053) is its own event.
_CALLED = (
    r"(?i:\bruntime result|\bret(?:[_ ]?code)?|\breturn(?: value)?(?=\[)|failed, return(?=: )"
    r"|(?<!execute, )\berr(?:or)?[_ ]?(?:code|no))(?: is)?[:=\[ ]{1,3}"
)
_AND_REASON = r"(?:, desc=\[(?P<reason_text>[^]]{0,200})\](?:, InnerCode=(?P<own_text>0x[0-9a-fA-F]{1,8}))?)?"
_OWN_CODE = (
    r"\b(?i:ret[_ ]?code|InnerCode) ?[=:] ?(?P<own_text>0x0{0,7}[1-9a-fA-F][0-9a-fA-F]{0,7}|11[789]\d{6})"
    r"(?![0-9a-zA-Z]|\.\d)(?:, \[(?P<reason_text>[^]]{0,200})\])?"
)
_RESULTS = (
    *(
        known("device.acl_error", range_of, rf"{_CALLED}(?P<code>{range_of}\d{{3}})(?!\.?\d){_AND_REASON}")
        for range_of in ("507", "107", "207")
    ),
    known("device.runtime_error", "ode", _OWN_CODE),
    known(
        "device.call_failed",
        " failed, reason=",
        r"\b(?P<call>rts?[A-Z]\w{1,60}) execut(?:e|ion) failed, reason=\[?(?P<reason_text>[^][]{1,200})",
    ),
)

_TABLE = (
    *MEMBERS,
    known(
        "device.memory_error",
        "MULTI BIT ECC",
        r"(?P<what>(?:HBM )?MULTI BIT ECC), (?P<severity>[A-Za-z]+) ECC, device_id ?= ?(?P<device>\d+), "
        r"event_id ?= ?(?P<event_text>0x[0-9a-fA-F]{1,16})(?:, time us ?= ?(?P<time_us>\d+))?",
    ),
    known(
        "device.cqe_error",
        "cqe",
        r"(?:err(?:or)? cqe|cqe err(?:or)?)(?:.{0,80}?status ?\[?(?P<status>\d+)\]?)?"
        r"(?:.{0,200}?(?:remoteIP|remote ip|ip)[:{]?\[?(?P<remote_text>[0-9a-fA-F.:]{3,45}))?",
    ),
    known(
        "device.notify_timeout",
        "Notify Wait",
        r"Task run failed, base information is .{0,100}?taskType\[Notify Wait\](?:, tag\[(?P<tag_text>[^]]{0,200})\])?",
    ),
    known(
        "device.task_failed",
        "base information is",
        r"base information is .{0,200}?type: ?(?P<type>[A-Z ]+), localRank: ?(?P<group_rank>\d+), "
        r"remoteRank: ?(?P<remote_group_rank>\d+)",
    ),
    known(
        "device.socket_timeout",
        " timeout",
        r"(?:get so(?:ck|kc)et timeout, total\[(?P<total>\d+)\] remain\[(?P<remain>\d+)\]"
        r"|wait socket establish timeout, role\[(?P<role>\d+)\] rank\[(?P<group_rank>\d+)\] "
        r"timeout\[(?P<seconds>\d+)(?: s)?\])",
    ),
    known("device.p2p_timeout", "connected p2p timeout", r"connected p2p timeout, timeout: ?(?P<seconds>\d+)"),
    known("device.lost", "lost heartbeat", r"Device lost heartbeat"),
    known("device.resumed", "HcclCommResume", r"HcclCommResume:success"),
    *_RESULTS,
)

_MEMORY = tuple(entry for entry in _TABLE if entry.kind == "device.memory_error")
_SUSPECTED = re.compile(r"\s{0,32}Cluster Exception Location\[")
_RAISED = re.compile(r"\w{1,60}(?:Error|Exception): ")
# CANN hands its words to its callers, which print them without its prefix: the place in its source stands behind them.
_SAID = re.compile(r"""\s{0,32}[^\s"'][^"']*(?:\[FUNC:|runtime result )""")
_OF_RUNTIME = ("device.acl_error", "device.runtime_error")
_IN_FRAMEWORK = _TABLE
# In CANN's own logs these words, too, call a number a code of the runtime.
_IN_ITS_OWN = (
    *_TABLE,
    known(
        "device.acl_error",
        "07",
        r"\b(?i:return(?: value)? |result ?[=:] ?|rt_?ret ?[=\[] ?|stream_?status ?[=:] ?|acl_?error ?[=:] ?)"
        r"(?P<code>[125]07\d{3})(?!\.?\d)",
    ),
)


class DeviceLogReader(PrefixedReader):
    """Lines of Ascend's own logs: kinds ``device.*``, with the field ``module`` if the line names one.

    ``device.notify_timeout`` (EI0002), ``device.socket_timeout`` (EI0006) and ``device.cqe_error`` (EI0013) have one
    kind in all their forms; every other code is ``device.error_code``. ``device.acl_error`` is a code that the runtime
    returned, ``device.runtime_error`` one of its own codes (``own_text``), with the ``code`` that it returns for it, if
    known. ``meaning`` is the documented meaning of the code, if any, ``reason_text`` the runtime's statement about it,
    also without a number (``device.call_failed``). ``rank`` is that of the log: CANN counts in a communicator
    (``group_rank``, ``remote_group_rank``), and names members by host and device
    (:mod:`chaos.observe.logs.hccl_cluster`). ``tz`` is the zone of the times in the log, None the local one.
    """

    name = "device"
    own_rank = True
    prefix = _PREFIX

    def event_of(self, prefix: re.Match[str], message: str) -> LogEvent | None:
        """Return the event of a message and the prefix before it."""
        wall_ns = self._wall.ns(prefix["date"], prefix["time"], int(prefix["milli"] + prefix["micro"]))
        pid = int(prefix["pid"]) if not prefix["pid"].startswith("-") else None
        module = {"module": prefix["module"]}
        event = _event(_IN_ITS_OWN, message, wall_ns, pid, module)
        if event is None or event.kind != "device.cqe_error" or prefix["level"] not in ("DEBUG", "INFO"):
            return event
        # Below that level CANN counts its errors and names their kinds even if there are none; a member's line counts.
        return event if "by_text" in event.fields else None

    def bare(self, line: str) -> LogEvent | None:
        """Return the event of a line without the prefix.

        The log of a worker contains error codes, and CANN's statements about a failed call, in such lines.
        """
        match = _BARE.match(line)
        if match is None and _SUSPECTED.match(line):
            return _described_event(SUSPICIONS, line, None, None, {})
        if match is None:
            called = _SAID.match(line) is not None and _RAISED.match(line) is None
            event = _described_event(_MEMORY + _RESULTS if called else _MEMORY, line, None, None, {})
            return None if event is None or has_prefix(line) else event
        stamped = match if match["date"] else _OWN.match(match["text"])
        if stamped is None:
            return _coded(match, None, None, {})
        wall_ns = self._wall.ns(stamped["date"], stamped["time"], int(stamped["milli"]) * 1000)
        return _coded(match, wall_ns, int(stamped["pid"]) if stamped["pid"] else None, {})


def of_framework(line: str, prefixed: Prefixed) -> LogEvent | None:
    """Return a statement about a device in a line of MindSpore or MindFormers, or in the error that ends a traceback.

    ``prefixed`` is the split line. A line of Ascend's own logs is neither, although it looks alike.
    """
    message = prefixed.message
    if len(message) < len(line):
        event = _event(_IN_FRAMEWORK, message, prefixed.wall_ns, prefixed.pid, {})
    else:
        event = _event(_RESULTS, line, None, None, {}) if _RAISED.match(line) else None
    return None if event is None or _PREFIX.match(line) else event


def _event(
    table: Sequence[Known], message: str, wall_ns: int | None, pid: int | None, fields: dict[str, str]
) -> LogEvent | None:
    if match := _CODE.search(message):
        return _coded(match, wall_ns, pid, fields)
    return _described_event(table, message, wall_ns, pid, fields)


def _described_event(
    table: Sequence[Known], message: str, wall_ns: int | None, pid: int | None, fields: dict[str, str]
) -> LogEvent | None:
    """Return the event of a message, with the meaning of its code."""
    event = find_event(table, message, wall_ns, pid)
    if event is None:
        return None
    event_fields: dict[str, Any] = {**event.fields, **fields}
    if event.kind == "device.runtime_error" and (code := acl_code(event_fields["own_text"])) is not None:
        event_fields["code"] = code
    if event.kind in _OF_RUNTIME and event_fields.get("code") in ACL_ERRORS:
        event_fields["meaning"] = ACL_ERRORS[event_fields["code"]]
    return LogEvent(event.kind, wall_ns, event.rank, None, event.pid, event_fields)


def _coded(match: re.Match[str], wall_ns: int | None, pid: int | None, fields: dict[str, str]) -> LogEvent:
    """Return the event of an error code of CANN. A code that only frames a code of the runtime becomes the latter."""
    code = match["code"]
    if code not in _CODES and (
        event := _described_event(_RESULTS, match["text"], wall_ns, pid, {**fields, "error": code})
    ):
        return event
    event_fields = {**fields, "code": code, "text": match["text"]}
    return LogEvent(_CODES.get(code, "device.error_code"), wall_ns, None, None, pid, event_fields)
