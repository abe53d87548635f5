"""Reader of torchrun's own lines: signals, failures, restarts, rendezvous, and its summary at the end.

By default torchrun prints its warnings and errors only; with ``LOGLEVEL=INFO`` the rest. Its summary names a root
cause, which is the first failure that torchrun has *noticed*. That may be a process that torchrun itself has ended, so
a rank of the summary is the rank that the line names, and no more. Each line of the summary is an event of its own
(``torchrun.failure``, in the order of the lines). The text behind ``traceback`` comes from the rank. Facts: runs of
torch 2.13 with gloo, the source of torch 2.13, and public logs of earlier versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.patterns import find_event, known
from chaos.observe.logs.torch.prefix import split_launcher, with_day_time

_ROLE = r"^\[(?P<role_text>[^\]]{1,100})\],? "
_SIGNAL = r"(?:Signals\.)?(?P<signal_text>SIG[A-Z0-9]{1,10}|\d{1,3})"
_NODE = r"^The node '(?P<node_text>[^']{1,300})' "
_RENDEZVOUS = r"rendezvous '(?P<run_text>[^']{1,300})'"

_TABLE = (
    known(
        "torchrun.closing",
        " signal SIG",
        rf"^(?:Send|Clos)ing process (?P<worker_pid>\d+) (?:closing|via) signal {_SIGNAL}",
    ),
    known(
        "torchrun.killing",
        "forcefully exiting via",
        rf"^Unable to shutdown process (?P<worker_pid>\d+) via {_SIGNAL}, "
        r"forcefully exiting via (?:Signals\.)?(?P<next_text>[A-Z0-9]{1,20})",
    ),
    known(
        "torchrun.abandoned",
        "did not exit after",
        r"^Process (?P<worker_pid>\d+) did not exit after (?P<signal_text>\S{1,20}) within (?P<seconds>[\d.]{1,12})s",
    ),
    known(
        "torchrun.failed",
        "failed (exitcode: ",
        r"^failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local_rank>\d+) \(pid: (?P<worker_pid>\d+)\) "
        r"of (?P<what>binary|fn): (?P<name_text>.{1,400})",
    ),
    known("torchrun.signalled", "death signal", rf"^Received {_SIGNAL} death signal, shutting down workers"),
    known("torchrun.signalled", "termination signal", rf"^Got termination signal: {_SIGNAL}"),
    known(
        "torchrun.restart",
        "attempts left",
        _ROLE + r"Worker group (?P<state>[A-Z]+)\. (?P<left>\d+)/(?P<of>\d+) attempts left; will restart worker group",
    ),
    known(
        "torchrun.members_changed",
        "new nodes from group_rank",
        _ROLE + r"Detected (?P<count>\d+) new nodes from group_rank=(?P<group_rank>\d+); will restart worker group",
    ),
    known(
        "torchrun.start",
        "starting workers for",
        _ROLE + r"starting workers for entrypoint: (?P<entrypoint_text>.{1,400})",
    ),
    known("torchrun.group_stop", "Stopping worker group", _ROLE + r"Stopping worker group"),
    known("torchrun.group_start", "Starting worker group", _ROLE + r"Starting worker group"),
    known("torchrun.rendezvous_begin", "Rendezvous'ing", _ROLE + r"Rendezvous'ing worker group"),
    known("torchrun.rendezvous_end", "Rendezvous complete", _ROLE + r"Rendezvous complete for workers"),
    known(
        "torchrun.assigned",
        "=",
        r"^ {2}(?P<what>restart_count|master_addr|master_port|group_rank|group_world_size|local_ranks|role_ranks"
        r"|global_ranks|role_world_sizes|global_world_sizes|event_log_handler)=(?P<value>.{0,65000})",
    ),
    known("torchrun.configured", "elastic_operator", r"^Starting elastic_operator with launch configs"),
    known("torchrun.setting", " : ", r"^ {2}(?P<what>[a-z_]{1,40}) {0,40} : (?P<value_text>.{0,4000})"),
    known(
        "torchrun.finished",
        "worker group successfully finished",
        _ROLE + r"worker group successfully finished\. Waiting (?P<seconds>[\d.]{1,12}) seconds for other agents",
    ),
    known(
        "torchrun.finished",
        "Local worker group finished",
        r"^Local worker group finished \((?:WorkerState\.)?(?P<state>[A-Z]+)\)\. "
        r"Waiting (?P<seconds>[\d.]{1,12}) seconds for other agents",
    ),
    known("torchrun.waited", "waiting for other agents", r"^Done waiting for other agents\. Elapsed: (?P<seconds>\S+)"),
    known("torchrun.waited", "waiting on exit barrier", r"^Error waiting on exit barrier\. Elapsed: (?P<seconds>\S+)"),
    known("torchrun.joining", " attempts to join", _NODE + r"attempts to join the next round of the " + _RENDEZVOUS),
    known(
        "torchrun.joined",
        " has joined round ",
        _NODE + r"has joined round (?P<round>\d+) of the " + _RENDEZVOUS + r" as rank (?P<node_rank>\d+) in a world of "
        r"size (?P<nodes>\d+)",
    ),
    known("torchrun.closed", " has closed the rendezvous", _NODE + r"has closed the " + _RENDEZVOUS),
    known(
        "torchrun.rendezvous_lost",
        "due to an error of type",
        _NODE
        + r"has failed to (?P<action_text>shutdown|send a keep-alive heartbeat to) the "
        + _RENDEZVOUS
        + r" due to an error of type (?P<error_text>[\w.]{1,200})",
    ),
    known("torchrun.left", "gracefully exited", r"^Rendezvous gracefully exited: (?P<reason_text>.{0,400})"),
    known(
        "torchrun.stuck",
        "uninterruptible sleep",
        _ROLE + r"Worker pid=(?P<worker_pid>\d+) (?P<what>stuck in|entered) uninterruptible sleep",
    ),
    known("torchrun.pids_differ", "do not match process_context", _ROLE + r"worker pids do not match process_context"),
    known("torchrun.error_file", "reply file", r"^Failed to parse reply file: (?P<path_text>\S.{0,4000})"),
    known(
        "torchrun.error_file",
        "to copy child error file",
        r"^no error file defined for parent, to copy child error file \((?P<path_text>[^)]{1,4000})\)",
    ),
    known("torchrun.error_file", "FAILED with no error file", r"^\(?'?local_rank %?\S{1,9} FAILED with no error file"),
    known("torchrun.log_directory", "log directory set to", r"^log directory set to: (?P<path_text>\S.{0,4000})"),
    known("torchrun.ranks", "nproc_per_node=", r"^Using nproc_per_node=(?P<ranks>\d+)"),
)

ROOT_CAUSE = "torchrun.root_cause"
"""The kind of the heading above the failure that torchrun calls the root cause."""

FAILURE = "torchrun.failure"
"""The kind of one line of a failure in the summary."""

_SUMMARY = (
    known(ROOT_CAUSE, "Root Cause", r"^Root Cause \(first observed failure\):$"),
    known(FAILURE, "time      : ", r"^ {2}time {6}: (?P<moment_text>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)$"),
    known(FAILURE, "host      : ", r"^ {2}host {6}: (?P<host_text>\S{1,255})$"),
    known(FAILURE, "rank      : ", r"^ {2}rank {6}: (?P<rank>\d+) \(local_rank: (?P<local_rank>\d+)\)$"),
    known(
        FAILURE,
        "exitcode  : ",
        r"^ {2}exitcode {2}: (?P<code>-?\d+) \(pid: (?P<worker_pid>\d+)\) {0,2}(?:\((?P<signal_text>SIG\w{1,20})\))?$",
    ),
    known(FAILURE, "error_file: ", r"^ {2}error_file: (?P<path_text>\S.{0,4000})$"),
    known(FAILURE, "traceback : ", r"^ {2}traceback : (?P<reason_text>.{0,400})"),
    known("torchrun.child_failed", "ChildFailedError", r"^[\w.]{1,200}\.ChildFailedError:"),
    known(
        "torchrun.ended_by",
        "SignalException",
        rf"^[\w.]{{1,200}}\.SignalException: Process (?P<launcher_pid>\d+) got signal: {_SIGNAL}",
    ),
    known(
        "torchrun.rendezvous_failed",
        ".Rendezvous",
        r"^torch\.distributed\.elastic\.rendezvous\.api\.(?P<error_text>Rendezvous\w{1,60})"
        r"(?:: (?P<reason_text>.{0,400})|$)",
    ),
)


class TorchrunLogReader(LogReader):
    """Lines of torchrun: kinds ``torchrun.*``. ``tz`` is the zone of the times in the log, None the local one.

    The event's ``pid`` is torchrun's own; ``worker_pid`` is the process of a rank. A prefix without a year gives the
    event no time: ``time_text`` is its month, day and local time, for
    :func:`chaos.observe.logs.torch.prefix.nearest_moment`. ``local_rank`` is a number within one node, and no rank.
    """

    name = "torchrun"

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether torchrun's prefix is among the lines."""
        return any(split_launcher(line, self._wall) is not None for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        prefixed = split_launcher(line, self._wall)
        if prefixed is None:
            return self._summary(line)
        event = find_event(_TABLE, prefixed.message, prefixed.wall_ns, prefixed.pid)
        return None if event is None else with_day_time(event, prefixed)

    def _summary(self, line: str) -> LogEvent | None:
        event = find_event(_SUMMARY, line, None, None)
        if event is None or "moment_text" not in event.fields:
            return event
        date, _, time = str(event.fields["moment_text"]).partition("_")
        return replace(event, wall_ns=self._wall.ns(date, time, 0))
