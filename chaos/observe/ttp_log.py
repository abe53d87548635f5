"""Reader of the logs of MindIO TFT (``ttp_log.log.<pid>``, or a worker's log when TTP_LOG_STDOUT is set).

Prefixes: ``2026-11-21 01:32:19.903248 30710 warning [30710][TTP controller.cpp:2518] `` in a file, where the number is
a *thread* (the process is in the file's name); ``... info [1306][3808][PYH ttp_controller.py:70] `` for the Python
part; ``2025-04-07 15:34:27.363613 info 1879138 [TTP controller.cpp:1512] `` in the documents of MindFormers. ``ACC`` is
the link layer. Facts: logs of four ranks with MindIO TFT, and its documents.
"""

from __future__ import annotations

import re
from dataclasses import replace

from chaos.observe.log_event import LogEvent
from chaos.observe.patterns import find_event, known
from chaos.observe.prefixed import PrefixedReader

_PREFIX = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d)\.(?P<micro>\d{6}) "
    r"(?:(?P<thread>\d{1,10}) [a-z]+|[a-z]+ (?P<thread2>\d{1,10})) "
    r"(?:\[\d{1,20}\]){0,3}\[(?P<part>TTP|PYH|ACC) [\w.]+:\d+\] "
)
_STATUS = (
    r"rank:(?P<rank>\d+) +step: ?(?P<step>-?\d+) npu_status: ?(?P<npu_status>\d+) run_status: ?(?P<run_status>\d+) "
    r"data_aval: ?(?P<data_aval>\d+) data_status: ?(?P<data_status>\d+)"
)
_DIFFERENCE = r" diff_time ?: ?(?P<diff_ms>\d+)"

_CONTROLLER = (
    known(
        "ttp.controller_start",
        "Init controller success",
        r"rank:(?P<rank>-?\d+), world size:(?P<world_size>\d+).{0,400}?arf:(?P<arf>\d)",
    ),
    known("ttp.registered", "report group list", r"rank:(?P<rank>\d+), report group list: (?P<group>\[[\d, ]*\])"),
    known("ttp.status_error", "status error", r"status error, " + _STATUS + _DIFFERENCE),
    known(
        "ttp.heartbeat_lost", "detected abnormal heartbeat", r"detected abnormal heartbeat, " + _STATUS + _DIFFERENCE
    ),
    known(
        "ttp.errors_selected",
        "selected error ranks",
        r"selected error ranks: (?P<ranks>\[[\d, ]*\]), step: (?P<step>-?\d+)",
    ),
    known("ttp.prelocked", "controller prelock step", r"prelock step: (?P<step>-?\d+) try times: (?P<tries>\d+)"),
    known("ttp.registration_refused", "a registration was", r"a registration was ignored: (?P<why_text>.{0,200})"),
    known(
        "ttp.switches",
        "retrySwitch_",
        r"retrySwitch_:(?P<retry>\d), arfSwitch:(?P<arf>\d), zitSwitch:(?P<zit>\d), retryFlag:(?P<retry_flag>\d), "
        r"nodeErrorFlag:(?P<node_error>\d), hcclFlag:(?P<hccl>\d)",
    ),
    known("ttp.state", "nextState", r"nextState: STATE_OP_(?P<state>\w+)"),
    known(
        "ttp.dump_refused",
        "has no complete data",
        r"dp:(?P<dp>\[[^][]*\]) has no complete data\. ret: ?(?P<ret>-?\d+)?",
    ),
    known("ttp.rename_begin", "Start rename", r"Start rename"),
    known("ttp.renamed", "finish rename", r"finish rename, rank:(?P<rank>\d+)"),
    known("ttp.dump_done", "DumpCallback return", r"DumpCallback return (?P<result>\w+)"),
    known("ttp.stop_begin", "start notify all device stop", r"start notify all device stop"),
    known("ttp.clean_begin", "start notify all device clean", r"start notify all device clean"),
    known("ttp.env_cleared", "notify all device stop & clean ok", r"stop & clean ok"),
    known("ttp.repair_begin", "Start do ", r"Start do (?P<repair>\w+) repair"),
    known("ttp.groups_rebuilt", "process group destroy", r"hccl process group destroy & rebuil?d success"),
    known("ttp.rollback_begin", "start rollback", r"start rollback"),
    known("ttp.rollback_done", "rollback success", r"Controller:(?P<rank>-?\d+) rollback success"),
    known("ttp.normal_begin", "start notify all rank normal", r"start notify all rank normal"),
    known("ttp.exit_sent", "controller send exit msg", r"send exit msg to all processors\.\.\."),
    known(
        "ttp.action_failed", "do action failed", r"do action failed\. (?:msg_op:|opcode: ACTION_OP_)(?P<operation>\w+)"
    ),
    known("ttp.action_begin", "performing an action now", r"opcode: ACTION_OP_(?P<operation>\w+)"),
    known("ttp.action_done", "do action success", r"opcode: ACTION_OP_(?P<operation>\w+)"),
    known("ttp.action_late", "cb outdated and retry", r"cbRetryTime: (?P<tries>\d+)"),
    known(
        "ttp.not_sent",
        "then send msg failed",
        r"msg_type:TTP_MSG_OP_(?P<message>\w+) rank_num:(?P<count>\d+), then send msg failed",
    ),
    known("ttp.sent", "send msg success", r"msg_type:TTP_MSG_OP_(?P<message>\w+) rank_num:(?P<count>\d+)$"),
    known(
        "ttp.not_sent",
        "not all msg send ok",
        r"msg_type:TTP_MSG_OP_(?P<message>\w+) failed_ranks:(?P<ranks>\[[\d, ]*\])",
    ),
    known(
        "ttp.not_sent",
        " msg failed, rank:",
        r"^send {1,2}msg failed, rank:(?P<rank>\d+) msg_type:TTP_MSG_OP_(?P<message>\w+)",
    ),
    known("ttp.no_link", "not find rank link", r"rank:(?P<rank>\d+) msg_type:TTP_MSG_OP_(?P<message>\w+)"),
    known("ttp.silent", "no response after msg sent", r"rank:(?P<rank>\d+), no response after msg sent"),
    known("ttp.abnormal", "NormalCallback found abnormal", r"ret: (?P<ret>-?\d+), againRet: (?P<again>-?\d+)"),
    known("ttp.collected", "collect latest status end", r"controller collect latest status end"),
    known("ttp.prelock_begin", "pre lock start", r"controller:(?P<rank>-?\d+) pre lock start"),
    known("ttp.prelock_done", "pre lock success", r"controller:(?P<rank>-?\d+) pre lock success"),
    known("ttp.report_handled", "finish handle report info", r"handle report info from rank:(?P<rank>\d+)"),
    known("ttp.machine_start", "StateMachine success", r"rank: ?(?P<rank>-?\d+) state: STATE_OP_(?P<state>\w+)"),
    known("ttp.server_begin", "Begin start server", r"master ip: (?P<address_text>\S+), port: (?P<port>\d+)"),
    known("ttp.listening", "Start controller success", r"ip: (?P<address_text>\S+), port: (?P<port>\d+)"),
    known("ttp.no_backup", "select backup controller", r"can't select backup controller"),
    known("ttp.environment", "[env] ", r"\[env\] (?P<name>\w{1,100}):(?P<value_text>.{0,400})"),
    known("ttp.exit_failed", "send exit msg", r"send exit msg to all processors failed"),
    known("ttp.controller_end", "controller exit done", r"ExitCallBack return (?P<result>\w+), controller exit done"),
    known("ttp.machine_end", "StateMachine", r"controller StateMachine (?P<what>thread exit|exit done)"),
)
_AGENT = (
    known("ttp.agent_asks", "Mindx notify", r"^Mindx notify (?P<request>[a-z ]+), error_rank: (?P<ranks>\[[\d, ]*\])"),
    known("ttp.agent_asked", "mindx notify", r"^mindx notify (?P<request>[a-z ]+), ret:(?P<ret>-?\d+)"),
    known("ttp.agent_awaited", "wait Mindx notify", r"wait Mindx notify (?P<request>[a-z ]+?) ?\.\.\."),
    known("ttp.agent_chose", "Mindx calling notify", r"Mindx calling notify do (?P<repair>\w+)"),
    known("ttp.agent_told", "action ret:", r"^report (?P<report>[a-z ]+) action ret:(?P<ret>-?\d+)"),
    known("ttp.agent_woke", "wait mindx wake up", r"wait mindx wake up action ret:(?P<ret>-?\d+)"),
    known("ttp.agent_registered", "mindx callback all register", r"callback all register, ret:(?P<ret>-?\d+)"),
    known("ttp.agent_waiter", "MindXEngine init waiter", r"init waiter ret:(?P<ret>-?\d+)"),
    known("ttp.no_agent", "mindx no register", r"mindx no register, skip (?P<skipped>[a-z ]+)"),
)
_PROCESSOR = (
    known(
        "ttp.processor_start",
        "initialize success",
        r"processor:(?P<rank>\d+) initialize success, retry:(?P<retry>\d), arf:(?P<arf>\d)",
    ),
    known("ttp.connected", "register to:", r"rank:(?P<rank>\d+) register to: \S+ success"),
    known(
        "ttp.reported", "report status", r"rank:(?P<rank>\d+) report status: (?P<status>\d+), run_status: (?P<run>\d+)"
    ),
    known(
        "ttp.after_prelock", "status after prelock", r"rank:(?P<rank>\d+) status after prelock: +step: (?P<step>\d+)"
    ),
    known(
        "ttp.dump_result",
        "reply dump result",
        r"rank:(?P<rank>\d+) reply dump result (?P<reply>\w+), dump ret:(?P<ret>-?\d+)",
    ),
    known("ttp.received", " receive ", r"rank:(?P<rank>\d+) receive (?P<message>[a-z ]+) message"),
    known("ttp.replied", " reply ", r"rank:(?P<rank>\d+) reply (?P<message>[a-z ]+?) (?:result|msg) (?P<reply>\w+)"),
    known("ttp.processor_end", "processor exit done", r"rank:(?P<rank>\d+) processor exit done"),
    known("ttp.link_up", "connect to:", r"rank:(?P<rank>\d+) connect to: \S+ success"),
    known(
        "ttp.register_begin",
        "register to controller",
        r"rank:(?P<rank>\d+) register to controller: ?\S+?(?:, retry times:(?P<tries>\d+))?$",
    ),
    known(
        "ttp.report_begin",
        "report info to controller",
        r"rank:(?P<rank>\d+) report info to controller: ?\S+?(?:, retry times:(?P<tries>\d+))?$",
    ),
    known(
        "ttp.report_done", "report info to:", r"rank:(?P<rank>\d+) report info to: \S+ success, after (?P<tries>\d+)"
    ),
    known("ttp.thread_start", " thread...", r"rank:(?P<rank>\d+) start (?P<what>[a-z ]+) thread"),
    known("ttp.wait_begin", "start wait next action", r"rank:(?P<rank>\d+) start wait next action"),
    known(
        "ttp.wait_end",
        "end wait next action",
        r"rank:(?P<rank>\d+) end wait next action\.\. ret: (?P<ret>-?\d+),waitRet (?P<wait_ret>-?\d+)",
    ),
    known("ttp.trainer_released", "sem up training thread", r"rank:(?P<rank>\d+) sem up training thread"),
)
_PYTHON = (
    known(
        "ttp.dump_config",
        "set dump config",
        r"rank:(?P<rank>\d+) set dump config step:(?P<step>-?\d+), repairId:(?P<repair_id>\d+), "
        r"optimidxs:(?P<optimizers>\[[\d, ]*\]), ranks:(?P<ranks>\[[\[\]\d, ]*\])",
    ),
    known("ttp.dump_begin", "begin to execute save checkpoint", r"rank:(?P<rank>\d+) begin to execute save checkpoint"),
    known("ttp.stopped", "stop consumed", r"rank:(?P<rank>\d+) stop consumed:(?P<seconds>[\d.]+)s, ret:(?P<ret>-?\d+)"),
    known(
        "ttp.callback_begin",
        "callback, repair_id_",
        r"rank:(?P<rank>\d+) start to (?P<callback>\w+) callback, repair_id_:(?P<repair_id>\d+)",
    ),
    known("ttp.group_rebuild", "rebuild group", r"rebuild group, rank:(?P<rank>\d+), repairId:(?P<repair_id>\d+)"),
    known("ttp.reboot", "node reboot", r"node reboot, rank:(?P<rank>\d+)"),
    known("ttp.repair_step", "repair_step", r"tft return repair_step: (?P<step>-?\d+)"),
    known(
        "ttp.result",
        "do action report_result",
        r"do action report_result, arg=\((?P<code>\d+), '(?P<message>[^']*)', "
        r"(?P<ranks_text>\{[^{}]*\})(?:, '(?P<strategy>[\w-]*)')?",
    ),
    known(
        "ttp.agent_action",
        "do action report_",
        # The arguments end where the words come again: else a line full of them would be searched from each to its end.
        r"do action (?P<action>report_\w+), arg=\((?P<arguments>(?:(?!do action report_).)*)\)",
    ),
    known(
        "ttp.agent_action_failed",
        " err, err=",
        r"do action (?P<action>\w{1,60}) err, err=(?P<why_text>.{0,400}?), arg=",
    ),
    known("ttp.agent_action_failed", " unregistered", r"^action (?P<action>\w{1,60}) (?P<why_text>unregistered)$"),
    known(
        "ttp.agent_actions", "actions api has been registered", r"registered\.\.\., all registered:(?P<all_text>\w+)"
    ),
    known("ttp.destroy", "calling destroy", r"calling destroy (?P<what>processor|controller)"),
    known(
        "ttp.stop_end",
        "stop callback",
        r"rank:(?P<rank>\d+) (?P<why_text>notify stop callback end waiting|uce or hccl error ?, no need wait)",
    ),
)
_LINK = (
    known("acc.link_reset", "receive header failed", r"Link (?P<link>\d+) receive header failed, (?P<reason>[^,]+)"),
    known(
        "acc.receive_failed", "receive msg failed", r"connRank: (?P<rank>\d+), receive msg failed\. ret: (?P<ret>-?\d+)"
    ),
    known(
        "acc.retry",
        "retry times",
        r"connRank: (?P<rank>\d+) Trying to connect to \S+ errno:(?P<errno>\d+), retry times:(?P<tries>\d+)",
    ),
    known("acc.connected", "Connected from", r"Connected from (?P<peer>\S+) successfully"),
    known("acc.reconnect", "Reconnecting", r"connRank: (?P<rank>\d+) Reconnecting, errno:(?P<errno>\d+)"),
    known(
        "acc.receive_failed",
        "recv msg_msg failed",
        r"connRank: (?P<rank>\d+), recv msg_msg failed: (?P<ret>-?\d+), msgType: (?P<message>-?\d+)",
    ),
    known("acc.send_failed", "Failed to send msg", r"to peer in link (?P<link>\d+), errno (?P<errno>\d+)"),
    known(
        "acc.connecting", "Trying to connect to", r"connRank: (?P<rank>\d+) Trying to connect to (?P<peer_text>\S+)$"
    ),
    known("acc.reached", "Connect to", r"Connect to (?P<peer_text>\S+) successfully"),
    known("acc.tries", "connect max times", r"connRank: (?P<rank>\d+) connect max times: (?P<tries>\d+)"),
    known("acc.server", "set server ip", r"ip\( (?P<address_text>\S+) \) and port\( (?P<port>\d+) \)"),
    known("acc.waiting", "sleep for link connect", r"connRank: (?P<rank>\d+), sleep for link connect"),
)
# What else it says to have failed, in its own words; those that have a form of their own are above.
_FAILED = (
    known("ttp.again_registered", "repeated registration", r"^repeated registration\. rank:(?P<rank>\d+)"),
    known(
        "ttp.controller_moved",
        "backup controller to master",
        r"backup controller to master, controller rank: ?(?P<rank>\d+)",
    ),
    known(
        "ttp.failed",
        " fa",  # it also writes falied
        r"^(?:rank|processor|[Cc]ontroller): ?(?P<rank>\d+),? {0,2}(?P<what_text>.{0,200}? fa(?:il|li)ed\b.{0,200})",
    ),
    known(
        "ttp.failed",
        " failed",
        r"^(?P<what_text>(?:mindx notify to \w{1,40}, )?(?:controller do|do save|arf wait) .{0,200}? failed\b.{0,200})",
    ),
)
_TABLES = {"TTP": _CONTROLLER + _PROCESSOR + _AGENT + _FAILED, "PYH": _PYTHON, "ACC": _LINK}

MESSAGES = (*_CONTROLLER, *_PROCESSOR, *_AGENT, *_FAILED, *_PYTHON)
"""What stands behind the prefix of a line, that of the link layer excepted."""


class TtpLogReader(PrefixedReader):
    """Lines of MindIO TFT. ``tz`` is the zone of the times in the log, None the local one.

    The kinds are ``ttp.*`` and ``acc.*``. ``ttp.errors_selected`` has no step when the SDK wrote -1. The field
    ``thread`` is the thread that wrote the line.
    """

    name = "ttp"
    prefix = _PREFIX

    def told(self, prefix: re.Match[str], message: str) -> LogEvent | None:
        """The event of a message and the prefix before it."""
        wall_ns = self._wall.ns(prefix["date"], prefix["time"], int(prefix["micro"]))
        event = find_event(_TABLES[prefix["part"]], message, wall_ns, None)
        if event is None:
            return None
        return replace(event, fields={**event.fields, "thread": int(prefix["thread"] or prefix["thread2"])})
