"""Reader of the output of ``msrun`` and of the scheduler's log.

Neither is reliable about *which* rank failed: after a kill of rank 1 the scheduler was seen to name node 0. So a
node that they blame is in the field ``node`` and never the event's ``rank``. Facts: MindSpore 2.10 on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chaos.observe.logs.framework_prefix import split_prefix
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.patterns import find_event, known

NODE_RANK = "cluster.node_rank"
"""The event in which a process names the rank that the cluster has given it."""

# The C++ part names its function before the message; the error that ends a traceback has it behind its name.
_HEAD = re.compile(r"(?:[\w~<>:]{1,200}\] )?(?:\w{1,60}Error: (?:Distributed job exited with exception\. )?)?")
_MARKS = ("Start scheduler process", "Start worker process with rank id", "meta_server_node.cc")
_TABLE = (
    known(
        "msrun.worker_start",
        "Start worker process",
        r"Start worker process with rank id:(?:(?P<rank>\d+)|None), log file:(?P<log>.{1,4096}?)\. ",
    ),
    known(
        "msrun.scheduler_start", "Start scheduler process", r"Start scheduler process, log file:(?P<log>.{1,4096}?)\. "
    ),
    known("msrun.spawned", "Distributed job is spawned", r"Distributed job is spawned"),
    known(
        "msrun.worker_exit",
        "Worker process ",
        r"Worker process (?P<worker_pid>\d+) exit with exception\.(?: Error code: (?P<code>-?\d+))?",
    ),
    known(
        "msrun.kill_workers", "kill all other workers", r"There's worker exits with exception, kill all other workers"
    ),
    known("msrun.workers_done", "All workers successfully exit", r"All workers successfully exit"),
    known(
        "msrun.scheduler_exit",
        "Scheduler process ",
        r"Scheduler process (?P<scheduler_pid>\d+) exit with exception",
    ),
    known(
        "msrun.failed",
        "Distributed job exited with exception",
        r"Please check logs in directory: (?P<directory>.+?)\.?$",
    ),
    known("msrun.interrupted", "msrun process received SIGINT", r"msrun process received SIGINT"),
    known("msrun.handed_over", "Mindx enabled", r"Mindx enabled, process controlled by mindx"),
    known(
        "msrun.kept", "Register callback to mindx", r"Register callback to mindx failed, process controlled by msrun"
    ),
    known("msrun.no_worker", "no active worker with", r"There's no active worker with pid: (?P<worker_pid>\d+)"),
    known("msrun.not_started", "has not been initialized", r"Process rank (?P<rank>\d+) has not been initialized"),
    known("cluster.ready", "Cluster is successfully initialized", r"Cluster is successfully initialized"),
    known("cluster.alive", "alive nodes", r"Cluster currently has (?P<nodes>\d+) alive nodes"),
    known("cluster.waiting", "Topology build timed out", r"retry\((?P<tries>\d+)/(?P<of>\d+)\)"),
    known(
        "cluster.registered",
        "is registered successfully",
        r"The new node: (?P<node>[^(]{1,200})\(role: (?P<role>\w+)\), rank id: (?P<rank>\d+)",
    ),
    known(NODE_RANK, "This node ", r"This node (?P<node>\S+) rank id: (?P<rank>\d+)"),
    known("cluster.node_lost", "is timed out", r"The node: (?P<node>\S+) is timed out"),
    known(
        "cluster.nodes_lost",
        "The total number of timed out node",
        r"timed out node is (?P<count>\d+)\. Timed out node list is: (?:\[const vector\])?\{(?P<nodes_list>[^{}]*)\}, "
        r"worker (?P<first>\S+) is the first one",
    ),
    known("cluster.nodes_lost", "The total number of timed out node", r"timed out node is (?P<count>\d+)\.? ?$"),
    known("cluster.abnormal", "abnormal compute graph nodes", r"There are (?P<count>\d+) abnormal compute graph nodes"),
    known("cluster.refused", "Repeated registration node", r"Repeated registration node: (?P<node>\S+)"),
    known("cluster.refused", "registered repeatedly", r"Node (?P<node>\S+) registered repeatedly"),
    known("cluster.recovered", "have been recovered", r"The node: (?P<node>\S+) have been recovered"),
)


class MsrunLogReader(LogReader):
    """Lines of msrun and of the cluster it builds: ``msrun.*`` and ``cluster.*``.

    ``tz`` is the zone of the times in the log, None the local one.
    """

    name = "msrun"

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether msrun's or the scheduler's own lines are among them."""
        return any(mark in line for line in first_lines for mark in _MARKS)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        prefixed = split_prefix(line, self._wall)
        return find_event(_TABLE, prefixed.message, prefixed.wall_ns, prefixed.pid, _HEAD)
