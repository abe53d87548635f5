"""Reader of the logs of MindCluster's agent (``taskd``), its Go part and its Python part.

Both begin ``[INFO]     2026/11/21 07:38:56.551173 12      manager/manager.go:108    text``. The number before the file
is a goroutine in the Go part and the process in the Python part, which also writes milliseconds in the six digits of
the fraction. Within torchrun it is a plugin, and stops, starts and restarts the ranks in torchrun's place. Facts: the
source of MindCluster 7.3 and of 2026-08 (22bb3d9), and its documents; no such log has been recorded here.
"""

from __future__ import annotations

import re

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.patterns import find_event, known
from chaos.observe.logs.prefixed import PrefixedReader

_PREFIX = re.compile(
    r"\[(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\] {1,8}(?P<date>\d{4}/\d\d/\d\d) (?P<time>\d\d:\d\d:\d\d)\."
    r"(?P<fraction>\d{6}) {1,4}(?P<number>\d{1,10}) {1,8}"
    r"(?:[\w.-]{1,100}/)?[\w.-]{1,100}\.(?P<language>go|py):\d{1,6} {1,8}"
)
_RANKS = r"(?P<ranks_text>[\[{(m].{0,4000})"
_TABLE = (
    known("taskd.fault", "send process fault", r"send process fault to clusterd, fault ranks: " + _RANKS),
    known(
        "taskd.strategies",
        "send recover strategy",
        r"send recover strategy to clusterd, strategies: \[(?P<strategies_text>[^]]{0,200})\]",
    ),
    known("taskd.stopped", "send stop complete", r"send stop complete to clusterd, msg: (?P<message_text>[^,]{0,400})"),
    known(
        "taskd.result", "send recover status", r"send recover status to clusterd, msg: (?P<message_text>[^,]{0,400})"
    ),
    known("taskd.start", "will start workers", r"nodeRank: ?(?P<node>-?\d+) will start workers"),
    known("taskd.started", "processes has been started", r"all training processes has been started"),
    known("taskd.start_list", "will start worker list", r"will start worker list, global rank: ?" + _RANKS),
    known("taskd.started_list", "process list has been started", r"has been started, global rank: ?" + _RANKS),
    known("taskd.restart", "restart part workers", r"restart part workers"),
    known(
        "taskd.is_fault", "fault_status.is_fault", r"nodeRank: ?(?P<node>-?\d+) {1,4}entering fault_status\.is_fault"
    ),
    known("taskd.kill", "will be killed", r"rank with pid (?P<pids_text>.{1,4000}?) will be killed"),
    known("taskd.kill_controller", "kill mindio controller", r"will kill mindio controller"),
    # The plugin for PyTorch, in torchrun's process.
    known(
        "taskd.agent_start",
        " start worker",
        r"^agent (?P<node>-?\d+) start worker, restart times is (?P<left>-?\d+)",
    ),
    known("taskd.new_fault", "New fault process", r"^New fault process detected, fault_rank: ?" + _RANKS),
    known("taskd.known_fault", "no additional fault", r"^no additional fault process, fault_rank: ?" + _RANKS),
    known(
        "taskd.order",
        " command, ",
        r"^receive (?P<order_text>\S{1,60}) command,(?: restart time is (?P<before>-?\d+),)? start to "
        r"(?P<what_text>restart workers|initialize workers|stop workers|exit agent|recover in place|grace exit workers)"
        r"(?:, restart time is (?P<left>-?\d+))?",
    ),
    known("taskd.fault_ranks", "fault_ranks is [", r"^(?:message |local )?fault_ranks is " + _RANKS),
    known("taskd.workers_start", "start workers, local rank", r"^start workers, local rank: ?" + _RANKS),
    known("taskd.workers_started", "start worker end", r"^start worker end$"),
    known("taskd.workers_stop", "stop workers, local rank", r"^stop workers, local rank: ?" + _RANKS),
    known("taskd.workers_stopped", "stop workers end", r"^stop workers end$"),
    known("taskd.group_start", "Starting worker group", r"^\[(?P<role_text>[^\]]{1,100})\] Starting worker group"),
    known("taskd.group_stop", "Stopping worker group", r"^\[(?P<role_text>[^\]]{1,100})\], Stopping worker group"),
    known("taskd.finished", "successfully finished", r"^\[(?P<role_text>[^\]]{1,100})\] worker group successfully"),
    known("taskd.exhausted", "restart times is negative", r"^(?:initialize_workers )?restart times is negative, exit"),
    known("taskd.report_timeout", "report fault rank timeout", r"^agent report fault rank timeout, exiting"),
    known("taskd.store_patched", "create_c10d_store", r"^Torch version (?P<torch_text>\S{1,60}) >= 2\.6\.0"),
    known("taskd.rank_status", " status is ", r"^rank (?P<rank>-?\d+) status is (?P<status_text>.{1,100})"),
)


class TaskdLogReader(PrefixedReader):
    """Lines of ``taskd``: kinds ``taskd.*``. ``tz`` is the zone of the times in the log, None the local one."""

    name = "taskd"
    prefix = _PREFIX

    def event_of(self, prefix: re.Match[str], message: str) -> LogEvent | None:
        """Return the event of a message and the prefix before it."""
        python = prefix["language"] == "py"
        micro = int(prefix["fraction"]) * (1000 if python else 1)
        wall_ns = self._wall.ns(prefix["date"].replace("/", "-"), prefix["time"], micro)
        return find_event(_TABLE, message, wall_ns, int(prefix["number"]) if python else None)
