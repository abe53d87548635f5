"""Messages of the part of MindIO TFT in each rank: its processor, and its Python part."""

from __future__ import annotations

from chaos.observe.logs.patterns import known

PROCESSOR = (
    known(
        "ttp.processor_start",
        "initialize success",
        r"processor:(?P<rank>-?\d+) initialize success, retry:(?P<retry>\d), arf:(?P<arf>\d)",
    ),
    known("ttp.connected", "register to:", r"rank:(?P<rank>-?\d+) register to: \S+ success"),
    known(
        "ttp.reported",
        "report status",
        r"rank:(?P<rank>-?\d+) report status: (?P<status>\d+), run_status: (?P<run>\d+)",
    ),
    known(
        "ttp.after_prelock",
        "status after prelock",
        r"rank:(?P<rank>-?\d+) status after prelock: +step: (?P<step>-?\d+)",
    ),
    known(
        "ttp.dump_result",
        "reply dump result",
        r"rank:(?P<rank>-?\d+) reply dump result (?P<reply>\w+), dump ret:(?P<ret>-?\d+)",
    ),
    known("ttp.received", " receive ", r"rank:(?P<rank>-?\d+) receive (?P<message>[a-z ]+) message"),
    known(
        "ttp.reply_failed",
        " reply ",
        r"^rank:(?P<rank>-?\d+) reply (?P<message>[a-z ]{1,40}?) (?:result|msg) failed",
    ),
    known("ttp.replied", " reply ", r"rank:(?P<rank>-?\d+) reply (?P<message>[a-z ]+?) (?:result|msg) (?P<reply>\w+)"),
    known("ttp.processor_end", "processor exit done", r"rank:(?P<rank>-?\d+) processor exit done"),
    known("ttp.link_up", "connect to:", r"rank:(?P<rank>-?\d+) connect to: \S+ success"),
    known(
        "ttp.register_begin",
        "register to controller",
        r"rank:(?P<rank>-?\d+) register to controller: ?\S+?(?:, retry times:(?P<tries>\d+))?$",
    ),
    known(
        "ttp.report_begin",
        "report info to controller",
        r"rank:(?P<rank>-?\d+) report info to controller: ?\S+?(?:, retry times:(?P<tries>\d+))?$",
    ),
    known(
        "ttp.report_done", "report info to:", r"rank:(?P<rank>-?\d+) report info to: \S+ success, after (?P<tries>\d+)"
    ),
    known("ttp.thread_start", " thread...", r"rank:(?P<rank>-?\d+) start (?P<what>[a-z ]+) thread"),
    known("ttp.wait_begin", "start wait next action", r"rank:(?P<rank>-?\d+) start wait next action"),
    known(
        "ttp.wait_end",
        "end wait next action",
        r"rank:(?P<rank>-?\d+) end wait next action\.\. ret: (?P<ret>-?\d+),waitRet (?P<wait_ret>-?\d+)",
    ),
    known("ttp.trainer_released", "sem up training thread", r"rank:(?P<rank>-?\d+) sem up training thread"),
    known(
        "ttp.signal", " receive sig ", r"^={0,8} ?this processor:?(?P<rank>\d+)? receive sig (?P<signal_text>.{1,60})"
    ),
    known("ttp.prelock_failed", " do prelock timeout", r"^rank:(?P<rank>-?\d+) (?P<what_text>do prelock timeout)"),
    known(
        "ttp.prelock_retry",
        "prelock return retry",
        r"^rank:(?P<rank>-?\d+) prelock return retry, now_step: ?(?P<step>-?\d+) limit_step:? ?(?P<limit>-?\d+)",
    ),
    known(
        "ttp.locked",
        " locked. now_step",
        r"^processor:(?P<rank>-?\d+) locked\. now_step: ?(?P<step>-?\d+) limit_step: ?(?P<limit>-?\d+)",
    ),
    known("ttp.assertion", "Assert ", r"^Assert (?P<condition_text>.{1,200})"),
    known("ttp.rename_end", " success", r"^rank:(?P<rank>-?\d+) rename success"),
    known(
        "ttp.backup_list",
        "update backup controller list",
        r"^rank:(?P<rank>-?\d+) update backup .{0,40}size: (?P<count>-?\d+)",
    ),
    known(
        "ttp.backup_address",
        "backup controller nums",
        r"^rank:(?P<rank>-?\d+), \[rank:ip\]:(?P<backup>-?\d+):(?P<address_text>\S+), backup controller nums",
    ),
    known("ttp.backup_begin", "init backup controller", r"^init backup controller, backup rank:(?P<rank>-?\d+)"),
    known(
        "ttp.backup_start",
        " start success",
        r"^processor:(?P<rank>-?\d+) backup controller (?P<backup>-?\d+):(?P<address_text>\S+) start success",
    ),
    known(
        "ttp.backup_call",
        " to backup controller: ",
        r"^rank:(?P<rank>-?\d+) (?P<call>connect|register|report) to backup controller: (?P<address_text>\S+)$",
    ),
    known(
        "ttp.backup_heartbeat",
        "[backup controller]: ",
        r"^rank:(?P<rank>-?\d+) send heartbeat msg to \[backup controller\]: (?P<backup>-?\d+):(?P<address_text>\S+)",
    ),
)

PYTHON = (
    known(
        "ttp.callback_begin",
        "begin to rename callback",
        r"^rank:(?P<rank>-?\d+) begin to (?P<callback>rename) callback",
    ),
    known(
        "ttp.callback_begin",
        "pause_step_:",
        r"^rank:(?P<rank>-?\d+) start to (?P<callback>pause) callback, pause_step_:(?P<step>-?\d+)",
    ),
    known("ttp.pause_held", "[pause] training paused", r"^\[pause\] training paused, rank:(?P<rank>-?\d+)"),
    known(
        "ttp.paused",
        "pause training consumed",
        r"rank:(?P<rank>-?\d+) pause training consumed:(?P<seconds>[\d.]+)s, ret:(?P<ret>-?\d+)",
    ),
    known("ttp.signal", "catch exception signal", r"^rank:(?P<rank>-?\d+) catch exception signal"),
    known("ttp.handler_raised", "An error occurred: ", r"^An error occurred: (?P<why_text>.{0,400})"),
    known(
        "ttp.exception",
        " exception, ",
        r"^rank:(?P<rank>-?\d+) catch (?P<exception>[\w.]{1,60}(?: [\w.]{1,60}){0,5}) exception, "
        r"(?P<why_text>.{0,400})",
    ),
    known("ttp.agent_registers", "register action[", r"^register action\[(?P<action>\w{1,60})\] success"),
    known(
        "ttp.dump_config",
        "set dump config",
        r"rank:(?P<rank>-?\d+) set dump config step:(?P<step>-?\d+), repairId:(?P<repair_id>-?\d+), "
        r"optimidxs:(?P<optimizers>\[[\d, -]*\]), ranks:(?P<ranks>\[[\[\]\d, -]*\])",
    ),
    known(
        "ttp.dump_begin", "begin to execute save checkpoint", r"rank:(?P<rank>-?\d+) begin to execute save checkpoint"
    ),
    known(
        "ttp.stopped", "stop consumed", r"rank:(?P<rank>-?\d+) stop consumed:(?P<seconds>[\d.]+)s, ret:(?P<ret>-?\d+)"
    ),
    known(
        "ttp.callback_begin",
        "callback, repair_id_",
        r"rank:(?P<rank>-?\d+) start (?:upgrade )?to (?P<callback>\w+) callback, repair_id_:(?P<repair_id>-?\d+)",
    ),
    known("ttp.group_rebuild", "rebuild group", r"rebuild group, rank:(?P<rank>-?\d+), repairId:(?P<repair_id>-?\d+)"),
    known("ttp.reboot", "node reboot", r"node reboot, rank:(?P<rank>-?\d+)"),
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
        r"rank:(?P<rank>-?\d+) (?P<why_text>notify stop callback end waiting|uce or hccl error ?, no need wait)",
    ),
    # For PyTorch: the loop around the training, and the store that a save at the end of life needs.
    known(
        "ttp.cache_emptied",
        "empty_cache cost",
        r"^\[(?P<stage>normal|repair) stage\] rank:(?P<rank>-?\d+) empty_cache cost:(?P<seconds>[\d.]{1,30})s",
    ),
    known(
        "ttp.memory",
        "memory_allocated_before",
        r"^\[memory\] rank:(?P<rank>-?\d+), (?P<sizes_text>memory_allocated_before.{1,400})",
    ),
    known(
        "ttp.memory_error_time",
        "hbm error time",
        r"^rank:(?P<rank>-?\d+) occur l2 cache hbm error time: (?P<error_time>-?\d+), ?optimizer start update time: "
        r"(?P<begin>-?\d+), end update time: ?(?P<end>-?\d+)",
    ),
    known(
        "ttp.exit_wait",
        "exit wait...",
        r"^rank:(?P<rank>-?\d+) reported exception state, exit wait",
    ),
    known("ttp.exit_waited", "wait dump, exit", r"^rank:(?P<rank>-?\d+) finished to wait dump, exit"),
    known(
        "ttp.store_begin",
        "ttp_launch_tcp_store",
        r"^ttp_launch_tcp_store_(?P<what>client|server), .{0,4400}?world_size:(?P<size>\d{1,9})",
    ),
    known(
        "ttp.store_ready",
        "tcp store",
        r"^(?:cur_rank:(?P<rank>-?\d+) successfully launch tcp store|start tcp store server success)",
    ),
)
