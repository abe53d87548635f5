"""Messages of the controller of MindIO TFT, and its dialogue with the agent of the cluster."""

from __future__ import annotations

from chaos.observe.logs.patterns import known

_STATUS = (
    r"rank:(?P<rank>-?\d+) +step: ?(?P<step>-?\d+) npu_status: ?(?P<npu_status>-?\d+) "
    r"run_status: ?(?P<run_status>-?\d+) data_aval: ?(?P<data_aval>{aval}) data_status: ?(?P<data_status>-?\d+)"
    r" diff_time ?: ?(?P<diff_ms>-?\d+)"
)


def _status(aval: str = r"-?\d+") -> str:
    """Return the controller's view of a rank; ``data_aval`` is 1 if its heartbeat is lost, and 0 if it is alive."""
    return _STATUS.replace("{aval}", aval)


CONTROLLER = (
    known(
        "ttp.controller_start",
        "Init controller success",
        r"rank:(?P<rank>-?\d+), world size:(?P<world_size>\d+).{0,400}?arf:(?P<arf>\d)",
    ),
    known("ttp.registered", "report group list", r"rank:(?P<rank>-?\d+), report group list: (?P<group>\[[\d, -]*\])"),
    known("ttp.status_error", "status error", r"status error, " + _status()),
    known("ttp.heartbeat_lost", "detected abnormal heartbeat", r"detected abnormal heartbeat, " + _status("1")),
    # The same words for a rank that lives and has reported an error: of its device, of communication, or another.
    known("ttp.rank_abnormal", "detected abnormal heartbeat", r"detected abnormal heartbeat, " + _status()),
    known(
        "ttp.errors_selected",
        "selected error ranks",
        r"selected error ranks: (?P<ranks>\[[\d, -]*\]), step: (?P<step>-?\d+)",
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
    known("ttp.renamed", "finish rename", r"finish rename, rank:(?P<rank>-?\d+)"),
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
        r"msg_type:TTP_MSG_OP_(?P<message>\w+) failed_ranks:(?P<ranks>\[[\d, -]*\])",
    ),
    known(
        "ttp.not_sent",
        " msg failed, rank:",
        r"^send {1,2}msg failed, rank:(?P<rank>-?\d+) msg_type:TTP_MSG_OP_(?P<message>\w+)",
    ),
    known("ttp.no_link", "not find rank link", r"rank:(?P<rank>-?\d+) msg_type:TTP_MSG_OP_(?P<message>\w+)"),
    known("ttp.silent", "no response after msg sent", r"rank:(?P<rank>-?\d+), no response after msg sent"),
    known("ttp.abnormal", "NormalCallback found abnormal", r"ret: (?P<ret>-?\d+), againRet: (?P<again>-?\d+)"),
    known("ttp.collected", "collect latest status end", r"controller collect latest status end"),
    known("ttp.prelock_begin", "pre lock start", r"controller:(?P<rank>-?\d+) pre lock start"),
    known("ttp.prelock_done", "pre lock success", r"controller:(?P<rank>-?\d+) pre lock success"),
    known("ttp.report_handled", "finish handle report info", r"handle report info from rank:(?P<rank>-?\d+)"),
    known("ttp.machine_start", "StateMachine success", r"rank: ?(?P<rank>-?\d+) state: STATE_OP_(?P<state>\w+)"),
    known("ttp.server_begin", "Begin start server", r"master ip: (?P<address_text>\S+), port: (?P<port>\d+)"),
    known("ttp.listening", "Start controller success", r"ip: (?P<address_text>\S+), port: (?P<port>\d+)"),
    known("ttp.no_backup", "select backup controller", r"can't select backup controller"),
    known("ttp.environment", "[env] ", r"\[env\] (?P<name>\w{1,100}):(?P<value_text>.{0,400})"),
    known("ttp.exit_failed", "send exit msg", r"send exit msg to all processors failed"),
    known("ttp.controller_end", "controller exit done", r"ExitCallBack return (?P<result>\w+), controller exit done"),
    known("ttp.machine_end", "StateMachine", r"controller StateMachine (?P<what>thread exit|exit done)"),
    known(
        "ttp.dump_failed", "DumpCallback: ", r"^DumpCallback: (?P<what_text>[a-z ]{1,40}) failed, ret: ?(?P<ret>-?\d+)"
    ),
    known("ttp.dump_failed", "do not support dump", r"^(?P<what_text>do not support dump)"),
    known(
        "ttp.unanswered",
        "not reply ranks: ",
        r"opCode: ACTION_OP_(?P<operation>\w+), sn: (?P<sn>-?\d+), not reply ranks: (?P<ranks>\[[\d, -]*\])",
    ),
    known(
        "ttp.unanswered",
        "not reply ranks: ",
        r"MsgType: (?P<message>-?\d+), sn: (?P<sn>-?\d+), cb not reply ranks: (?P<ranks>\[[\d, -]*\])",
    ),
    known(
        "ttp.prelock_failed",
        "lock",
        r"^[Cc]ontroller:(?P<rank>-?\d+) (?P<what_text>pre ?lock (?:error|max_step error|found network error).{0,100})",
    ),
    known(
        "ttp.controller_stopped", "has stopped service", r"^this controller(?::(?P<rank>-?\d+))? has stopped service"
    ),
    known("ttp.replicas_lost", "all rank is abnormal!", r"^all rank is abnormal! rank: ?(?P<rank>-?\d+)"),
    known("ttp.collected_in_part", "found some worker error", r"controller collect latest status found some worker"),
    known("ttp.reverted", "revert to normal state", r"^errorRankMsg_ is empty, revert to normal"),
    known("ttp.pause_begin", "pause train ret:", r"^controller pause train ret:(?P<ret>-?\d+)"),
    known("ttp.pause_done", "pause train success", r"^Controller pause train success"),
    known("ttp.pause_wait", "notify continue...", r"^Waiting for MindXCluster notify continue"),
    known(
        "ttp.pause_failed", " found ", r"^(?P<what_text>PauseWait found abnormal), ret: (?P<ret>-?\d+), againRet: -?\d+"
    ),
    known(
        "ttp.pause_failed",
        "Controller ",
        r"^Controller (?P<what_text>(?:pause train|do pause wait|continue training) failed)\.",
    ),
    known(
        "ttp.pause_failed",
        " found network error",
        r"^controller:(?P<rank>-?\d+) (?P<what_text>(?:pause|continue) train found network error)",
    ),
    known("ttp.broadcast_begin", "start broadcast", r"^start broadcast, ip: (?P<controllers_text>.{0,4000})"),
    known("ttp.broadcast_done", "finish broadcast", r"^finish broadcast, ip: (?P<controllers_text>.{0,4000})"),
    known("ttp.backup_promoted", "BackupToMaster", r"^Controller: BackupToMaster, actionSn: (?P<sn>-?\d+)"),
)

AGENT = (
    known("ttp.cluster_event", "found mindx event", r"found mindx event:(?P<event>-?\d+), ret:(?P<ret>-?\d+)"),
    known("ttp.cluster_order", "notify to ", r"^Mindx Cluster notify to do (?P<order>[a-z]+)"),
    known("ttp.cluster_order", "notify to ", r"^mindx calling notify to (?P<order>[a-z]+)!"),
    known(
        "ttp.cluster_order",
        "notify to ",
        r"^mindx notify to (?P<order>[a-z]{1,40}), (?P<why_text>controller do .{1,80} failed)",
    ),
    known(
        "ttp.cluster_order",
        "notify to ",
        r"^(?P<why_text>controller do .{1,80}? failed), mindx notify to (?P<order>[\w-]{1,40})",
    ),
    known("ttp.cluster_unexpected", "action unexpected", r"^mindx calling action unexpected"),
    known("ttp.agent_late", "wait mindx exit timeout", r"^controller start wait mindx (?P<request>exit) timeout"),
    known("ttp.agent_awaited", "wait mindx exit", r"^controller start wait mindx (?P<request>exit) \.\.\."),
    known("ttp.agent_awaited", "wait mindx renotify", r"^wait mindx renotify (?P<request>[a-z ]+?) ?\.\.\."),
    known("ttp.no_waiter", "event handle is null", r"^event handle is null! event: (?P<event>-?\d+)"),
    known("ttp.agent_asks", "Mindx notify", r"^Mindx notify (?P<request>[a-z ]+), error_rank: (?P<ranks>\[[\d, -]*\])"),
    known("ttp.agent_asked", "mindx notify", r"^mindx notify (?P<request>[a-z ]+), ret:(?P<ret>-?\d+)"),
    known("ttp.agent_awaited", "wait Mindx notify", r"wait Mindx notify (?P<request>[a-z ]+?) ?\.\.\."),
    known("ttp.agent_chose", "Mindx calling notify", r"Mindx calling notify do (?P<repair>\w+)"),
    known("ttp.agent_told", "action ret:", r"^report (?P<report>[a-z ]+) action ret:(?P<ret>-?\d+)"),
    known("ttp.agent_woke", "wait mindx wake up", r"wait mindx wake up action ret:(?P<ret>-?\d+)"),
    known("ttp.agent_registered", "mindx callback all register", r"callback all register, ret:(?P<ret>-?\d+)"),
    known("ttp.agent_waiter", "MindXEngine init waiter", r"init waiter ret:(?P<ret>-?\d+)"),
    known("ttp.no_agent", "mindx no register", r"mindx no register, skip (?P<skipped>[a-z ]+)"),
)
