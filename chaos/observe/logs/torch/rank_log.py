"""Reader of the lines of a rank of PyTorch: failed collectives, watchdogs, stores, uncaught exceptions.

PyTorch puts ``[rank1]: `` before each line of an uncaught exception, and ``[rank1]:`` before its loggers' lines, once
the process has joined a process group: that number is the rank of the job. torchrun's own tag is ``[default1]:``, with
a local rank. Numbers in a message (``[Rank 1]``) count within its process group (``group_rank``). Facts: runs of torch
2.13 with gloo; public logs of torch 2.0 to 2.12 for NCCL, and of torch_npu 2.1 to 2.6 for HCCL. Nothing was run on an
accelerator.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.patterns import find_event, known
from chaos.observe.logs.torch.error_file import read_error_file
from chaos.observe.logs.torch.prefix import split_rank, with_day_time
from chaos.observe.logs.traceback_end import BEGIN

_GROUP = r"^(?:\[(?:PG [^\]]{0,200} )?Rank (?P<group_rank>\d{1,9})\] {0,2})?"
_WORK = r"(?P<work>-?\d{1,20})"
_DONE = r"last enqueued (?:[A-Z]{1,5}CL )?work: (?P<enqueued>-?\d{1,20}), last completed (?:[A-Z]{1,5}CL )?work: "
_TIMED_OUT = (
    r"Watchdog caught collective operation timeout: Work(?P<library>\w{1,20})\(SeqNum=(?P<sequence>\d{1,18}), "
    r"OpType=(?P<operation>\w{1,60})(?:, Numel(?:In|Out)=\d{1,20}){0,2}, Timeout\(ms\)=(?P<timeout_ms>\d{1,18})\) "
    r"ran for (?P<ran_ms>\d{1,18}) milliseconds"
)

_LOGGED = (
    known("watchdog.timeout", "Watchdog caught", _GROUP + _TIMED_OUT),
    known(
        "watchdog.status",
        "last enqueued",
        _GROUP
        + r"(?P<what>Timeout|Exception \(either an error or timeout\) detected by watchdog) at (?:[A-Z]{1,5}CL )?work: "
        + rf"{_WORK}, {_DONE}(?P<completed>-?\d{{1,20}})",
    ),
    known(
        "watchdog.status",
        "detected by watchdog at work sequence",
        _GROUP
        + rf"(?P<what>failure) detected by watchdog at work sequence id: {_WORK} PG status: {_DONE}"
        + r"(?P<completed>-?\d{1,20})",
    ),
    known(
        "watchdog.dump",
        " dump signal",
        _GROUP
        + r"(?P<what>Received a dump signal|Observed flight recorder dump signal)"
        + r"(?: due to a collective timeout from {1,2}rank (?P<remote_rank>\d{1,9}))?",
    ),
    known("watchdog.failed", "operations have failed or timed out", _GROUP + r"Some \w{1,20} operations have failed"),
    known("watchdog.down", "taking the entire process down", _GROUP + r"To avoid data inconsistency, we are taking"),
    known(
        "watchdog.ended",
        "watchdog thread terminated",
        _GROUP + r"(?:NCCL|HCCL|Process group) watchdog thread terminated with exception: (?P<reason_text>.{0,400})",
    ),
    known("watchdog.heartbeat", "Heartbeat monitor timed out", _GROUP + r"Heartbeat monitor timed out"),
    known(
        "store.lost",
        "flag on TCPStore",
        _GROUP
        + r"Failed to check the \"should dump\" flag on TCPStore, .{0,200}?with error: (?P<reason_text>.{0,400})",
    ),
    known(
        "store.unreachable",
        "client socket",
        r"^(?:\[c10d\] )?The client socket has (?:failed to connect to|timed out after (?P<ms>\d{1,18})ms while trying "
        r"to connect to) (?P<address_text>\S.{0,300}?)(?: \(errno: (?P<errno>\d{1,6})\b.{0,200}|\.)$",
    ),
    known(
        "store.unreachable",
        "TCP client failed",
        r"^TCP client failed to connect/validate to host (?P<address_text>\S{1,300}) - (?P<what_text>.{1,60})",
    ),
    known(
        "store.port_taken",
        "server socket has failed",
        r"^(?:\[c10d\] )?The server socket has failed to (?:bind to|listen on) (?P<address_text>\S.{0,300}?)"
        r" \(errno: (?P<errno>\d{1,6})\b",
    ),
    known(
        "group.connect_failed",
        "connectFullMesh failed",
        r"^Gloo connectFullMesh failed with (?P<reason_text>.{0,400})",
    ),
    known(
        "group.not_destroyed",
        "destroy_process_group() was not",
        _GROUP + r"(?:Warning: )?WARNING: destroy_process_group\(\) was not called",
    ),
)

_ERROR = r"^(?P<error_text>[A-Za-z_][\w.]{0,200}): "
_GLOO = r"\[[^\]]{0,300}gloo/[^\]]{1,200}:\d{1,7}\] "
_RAISED = (
    known(
        "collective.timeout",
        "Timed out waiting ",
        _ERROR + _GLOO + r"Timed out waiting (?P<timeout_ms>\d{1,18})ms for (?P<operation>\w{1,40}) operation",
    ),
    known("collective.failed", "gloo/", _ERROR + _GLOO + r"(?!Timed out waiting)(?P<reason_text>\S.{0,200})"),
    # Of a connection that gloo has closed, since another operation of the same process had timed out.
    known(
        "collective.failed",
        "Application timeout caused",
        _ERROR + r"(?P<reason_text>Application timeout caused pair closure)",
    ),
    known(
        "group.connect_failed",
        "connectFullMesh failed",
        _ERROR + r"Gloo connectFullMesh failed with (?P<reason_text>.{0,400})",
    ),
    known(
        "collective.failed",
        "CL error in: ",
        _ERROR + r"(?:\[ERROR\] )?(?P<library>[A-Z]{1,5}CL) error in: (?P<reason_text>\S.{0,400})",
    ),
    known(
        "collective.failed",
        "HCCL function error: ",
        _ERROR + r"\S{1,400}:\d{1,7} (?P<library>HCCL) function error: (?P<call>\w{1,100})\([^,]{0,100}"
        r"(?:, [^,]{0,100}){0,20}, error code is (?P<code>\d{1,9})",
    ),
    known(
        "store.timeout",
        "waiting for clients",
        _ERROR + r"Timed out after (?P<seconds>\d{1,9}) seconds waiting for clients\. "
        r"(?P<joined>\d{1,9})/(?P<of>\d{1,9}) clients joined",
    ),
    known(
        "store.unreachable",
        "client socket has",
        _ERROR + r"The client socket has (?:failed|timed out) (?:after (?P<ms>\d{1,18})ms while trying )?to connect to "
        r"(?P<address_text>\S.{0,300})",
    ),
    known(
        "store.port_taken",
        "server socket has failed",
        _ERROR + r"The server socket has failed to (?P<reason_text>.{0,400})",
    ),
    known(
        "error.classified",
        " ERROR",
        _ERROR + r"(?:\S{1,200} )?(?P<error>UCE ERROR|HBM MULTI BIT ECC ERROR|SUSPECT REMOTE ERROR|UB LINK ERROR"
        r"|HCCS LINK ERROR|PRECISION ERROR)\b",
    ),
    known("error.classified", "FORCE STOP", _ERROR + r"(?:\S{1,200} )?(?P<error>FORCE STOP)\b"),
    known("error.classified", "HCCL OP RETRY", _ERROR + r"(?:\S{1,200} )?(?P<error>HCCL OP RETRY FAILED)\b"),
    known(
        "watchdog.ended",
        "what(): ",
        r"^ {1,4}what\(\): {1,4}" + _GROUP[1:] + r"(?:NCCL|HCCL|Process group) watchdog thread terminated with "
        r"exception: (?P<reason_text>.{0,400})",
    ),
)
_NPU = re.compile(
    r"\[ERROR\] (?:(?P<date>\d{4}-\d\d-\d\d)-(?P<time>\d\d:\d\d:\d\d) )?"
    r"\(PID:(?P<pid>\d{1,10}), Device:(?P<device>-?\d{1,9}), RankID:(?P<rank>-?\d{1,9})\) "
    r"(?P<code>ERR\d{5}) (?P<module>[A-Z]{2,20}) (?P<reason>.{0,400})"
)

_JOINED = ("watchdog.", "collective.", "group.", "error.")
"""Kinds of events of a process that has joined its process group, so that ``[rank1]:`` before them is its rank."""

_EXCEPTION = re.compile(
    r"(?P<error>(?:[A-Za-z_]\w{0,60}\.){0,10}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Timeout|Failure))"
    r"(?:: (?P<reason>.{0,400}))?"
)
_FRAME = re.compile(r'  File "[^"]{1,4000}/torch/[^"]{1,400}", line ')


class TorchRankLogReader(LogReader):
    """Lines of a rank of PyTorch. ``tz`` is the zone of the times in the log, None the local one.

    ``error.traceback`` and ``error.raised`` are the first and the last line of an uncaught exception, in a line that
    PyTorch has marked with the rank. ``error.file`` is the whole file ``error.json`` of torchrun's ``record``. A prefix
    without a year gives the event no time, but the field ``time_text``.
    """

    name = "torch"
    own_rank = True

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether PyTorch's prefix, or a call in PyTorch, is among the lines."""
        return any(
            split_rank(line) is not None or _FRAME.match(line) or read_error_file(line) is not None
            for line in first_lines
        )

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        prefixed = split_rank(line)
        if prefixed is not None:
            event = find_event(_LOGGED, prefixed.message, prefixed.wall_ns, prefixed.pid)
            return None if event is None else with_day_time(event, prefixed)
        if line.startswith("{"):
            return read_error_file(line)
        return self._coded(line) if line.startswith("[ERROR] ") else find_event(_RAISED, line, None, None)

    def read_of(self, line: str, rank: int) -> LogEvent | None:
        """Return the event of a line that PyTorch has marked with the rank of its process."""
        event = self.read(line)
        if event is not None:
            marked = event.rank is None and event.kind.startswith(_JOINED)
            return replace(event, rank=rank) if marked else event
        if line == BEGIN:
            return LogEvent("error.traceback", rank=rank)
        match = _EXCEPTION.match(line)
        if match is None or (match.end() < len(line) and match["reason"] is None):
            return None
        fields = {"error_text": match["error"], "reason_text": match["reason"] or ""}
        return LogEvent("error.raised", rank=rank, fields=fields)

    def read_unended(self, line: str) -> LogEvent | None:
        """Return the event of an ``error.json``, which ends without a line feed."""
        return read_error_file(line)

    def _coded(self, line: str) -> LogEvent | None:
        """Return the event of an error code of torch_npu."""
        match = _NPU.match(line)
        if match is None:
            return None
        wall_ns = self._wall.ns(match["date"], match["time"], 0) if match["date"] else None
        rank = int(match["rank"])
        fields = {"device": int(match["device"]), "module": match["module"], "reason_text": match["reason"]}
        return LogEvent(
            "npu.error", wall_ns, rank if rank >= 0 else None, None, int(match["pid"]), {"code": match["code"]} | fields
        )
