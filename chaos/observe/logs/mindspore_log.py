"""Reader of a worker's log, MindSpore or MindFormers: losses, recovery handlers, errors, compile cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.observe.logs.device_log import of_framework
from chaos.observe.logs.framework_prefix import has_prefix, split_prefix
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.patterns import Known, find_event, known
from chaos.observe.logs.refusals import REFUSALS

_LOSS = "train.loss"
# A message begins where the prefix ends, or behind the function that MindSpore's C++ puts there. An error also ends a
# traceback. The same words inside another text are a quotation: help, a source line, a report of somebody else.
_SAID = r"^(?:[\w:~<>()]{1,100}\] )?"
_RAISED = rf"{_SAID}(?:uce wrapper caught RuntimeError e_str: ?)?(?:\w{{1,40}}Error: )?"
_WATCHDOG = (
    rf"(?:^\[ERROR\] DISTRIBUTED\(\d{{1,10}},python\): |{_SAID})"
    r"(?:HcclWatchDog thread catch exception: (?:\[rank \d{1,9}\] )?)?"
    r"HcclWatchdogThread catch an error: "
)
"""The first form is that of the rehearsal's watchdog in runs of earlier versions: a prefix without a time."""
# The text ends where the words come again: else a line full of them would be searched from each to its end.
_CAUGHT = r"(?P<text>(?:(?!catch an error: ).)*?)"


def _message(kind: str, literal: str, pattern: str) -> Known:
    """Return a message that begins with these words."""
    return known(kind, literal, _SAID + pattern)


def _raised(kind: str, literal: str, pattern: str) -> Known:
    """Return the text of an error, as a message or at the end of a traceback."""
    return known(kind, literal, _RAISED + pattern)


_TABLE = (
    known(
        _LOSS,
        ", loss is ",
        r"^epoch: (?P<epoch>\d{1,18}) step: (?P<step_in_epoch>\d{1,18}), loss is (?P<loss_text>\S+)",
    ),
    _message(
        "train.epoch_time",
        " epoch time: ",
        r"(?P<mode>Train|Eval) epoch time: +(?P<epoch_ms>[\d.]+) ms, per step time: +(?P<step_ms>[\d.]+) ms",
    ),
    _message(
        "checkpoint.saved",
        "Finish saving ckpt",
        r"Finish saving ckpt of epoch (?P<epoch>\d+) step (?P<step_in_epoch>\d+) using (?P<seconds>[\d.]+) seconds",
    ),
    _message(
        "tft.handler_begin",
        "Enter _",
        r"Enter _(?P<handler>save_checkpoint_on_failure|rename_save_result|"
        r"tft_(?:stop|clean|repair)_callback(?=,| device_id| repair type|$)|tft_rebuild_groups(?=,|$))",
    ),
    # That is how MindSpore writes the end of this one.
    _message("tft.handler_end", "Enter _tft_rebuild_groups ok", r"Enter _(?P<handler>tft_rebuild_groups) ok"),
    _message(
        "tft.handler_end",
        "Finish _",
        r"Finish _(?P<handler>save_checkpoint_on_failure|rename_save_result|tft_\w+?_callback)",
    ),
    _message("tft.exit", "Enter mindio ttp exit process", r"Enter mindio ttp exit process"),
    _message("tft.replicas", "Set TFT replica with dp", r"Set TFT replica with dp: [(\[](?P<dp_list>[\d, ]*)[)\]]"),
    _message(
        "tft.repaired",
        "uce wrapper caught repair finish",
        r"uce wrapper caught repair finish REPAIR STEP: ?(?P<step>\d+) ?batch_num: ?(?P<batch_num>\d+)",
    ),
    _message(
        "tre.thrown",
        "is greater equal than threshold",
        r"Current global norm \[?(?P<norm>[-+.\deEinfa]+)\]? is greater equal than threshold "
        r"(?P<threshold>[-+.\deE]+), stop training\.{0,3}\s*$",
    ),
    _message(
        "tre.again",
        "is still greater or equal than threshold",
        r"The global norm \[?(?P<norm>[-+.\deEinfa]+)\]? of step (?P<step>\d+) is still greater or equal than "
        r"threshold (?P<threshold>[-+.\deE]+), continue training",
    ),
    # MindFormers raises it without logging it, so that it stands without its prefix at the end of a traceback.
    known(
        "skip.stopped",
        "consecutive times greater than threshold",
        r"^(?:\w{1,40}Error: )?Current global norm \[?(?P<norm>[-+.\deEinfa]{1,40})\]? "
        r"(?:of step (?P<step>\d{1,18}) )?has been (?P<times>\d{1,18}) consecutive times greater than threshold:? ?"
        r"(?P<threshold>[-+.\deE]{1,40}), stop training",
    ),
    _message(
        "tft.resumed",
        "Resume training after TREError",
        r"Resume training after TREError from step (?P<step>\d+)\.?\s*$",
    ),
    # The short form is what the vendor's recipe raises in a callback; MindSpore's libraries hold the others.
    _raised(
        "error.classified",
        "Error occurred",
        r"(?P<error>TREError|UCEError|HCCEError|SuspectRemoteError|ForceStopError) occurred",
    ),
    _raised(
        "error.classified",
        " occurs when execute",
        r"(?P<error>UCEError|HCCEError|SuspectRemoteError|ForceStopError)(?: error)? occurs when execute"
        r"(?:, error_code=(?P<code>\d+))?",
    ),
    _raised("error.classified", " FINISH", r"(?P<error>(?:ARF|STEP) FINISH)\b"),
    _message(
        "compile.cache_hit", "Use the compilation cache", r"Use the compilation cache and execute the backend actions"
    ),
    _message(
        "compile.cache_miss", "compilation actions", r"(?:[\w ]{1,100}[,.] )?[Ee]xecute all the compilation actions"
    ),
    known(
        "watchdog.error",
        "HcclWatchdogThread catch an error",
        rf"{_WATCHDOG}{_CAUGHT}, rank id: ?(?P<rank>\d*), group name: ?(?P<group>\S*)",
    ),
    known("watchdog.error", "Global rank id", rf"{_WATCHDOG}{_CAUGHT}\. Global rank id: \[(?P<rank>\d+)\]"),
    # Other versions of MindSpore word it otherwise, and count ranks in the group.
    _message(
        "watchdog.error",
        "got hccl error",
        r"Hcom Monitor thread got hccl error, ?rank: ?(?P<rank>\d+), group name: ?(?P<group>[^\s,]+)",
    ),
    _message(
        "watchdog.stop",
        "Watchdog thread got hccl error",
        r"Watchdog thread got hccl error, try to stop training\. rank: ?(?P<rank>\d*)",
    ),
    _message("watchdog.destroy", "Try to destroy all streams", r"Try to destroy all streams by watch dog thread"),
    # The error of a collective that gives up: the code of CANN counts, even behind the kernel's launch.
    _raised("device.notify_timeout", "EI0002", r"Launch kernel failed: (?P<code>EI0002): (?P<text>.{0,400})"),
    _raised("collective.failed", "Launch kernel failed", r"Launch kernel failed(?::|, name:) ?(?P<kernel>[^\s,]+)"),
    _message(
        "collective.wait_failed",
        "wait receiving",
        r"(?P<collective>Ring ReduceScatter|Ring AllGather|Broadcast|Reduce) wait receiving "
        r"\[(?P<peer>\d+),(?P<request>\d+)\] failed",
    ),
    known("tft.handle", "TFT handle", r"^TFT handle (?P<what>not init|init ok)"),
    known(
        "tft.start",
        "tft ",
        r"^(?P<what>Begin to start|Finish start|Finished start) tft (?P<part>controller|processor)"
        r"(?: on rank_id:(?P<rank>\d+))?",
    ),
    known(
        "tft.reboot",
        "reboot",
        r"^(?:tft report (?P<what>reboot init finish)|get reboot type:(?P<type>[\w ]{1,40})|"
        r"tft (?P<done>reboot success))",
    ),
    known("tft.limit_reset", "Reset limit step", r"^Reset limit step$"),
    known("tft.pause", "tft_pause_train", r"^(?P<what>Go into|End) tft_pause_train"),
    known("tft.strategy", "err_strategy", r"^_tft_clean_callback err_strategy: (?P<strategy>\w+)"),
    _message(
        "tft.copy",
        "SEND_RECV",
        r"(?:Enter _tft_repair_callback )?SEND_RECV repair type: ?(?P<repair>\d+), "
        r"src_rank: ?(?P<source>\[[\d, ]*\]|\d+), "
        r"dst_rank: ?(?P<target>\[[\d, ]*\]|\d+)",
    ),
    _message(
        "tft.handler_step", "Enter _tft_clean_callback resume", r"Enter _tft_clean_callback (?P<what>resume_hccl_comm)"
    ),
    _message(
        "tft.handler_step",
        "REPARI_DEVICE",
        r"Enter _tft_repair_callback uce (?P<what>REPARI_DEVICE) device_id ?: ?(?P<device>\d+)",
    ),
    known("tft.handler_step", "re launch send recv", r"^(?P<what>(?:try to pre|Pre) launch send recv)"),
    known("tre.restore_begin", "Process training result error start", r"^Process training result error start"),
    known("tre.restore_end", "Process training result error end", r"^Process training result error end"),
    known("tre.channel_cleaned", "Clean tdt channel", r"^Clean tdt channel\.$"),
    known("tre.load", "Load checkpoint", r"^Load checkpoint\.$"),
    known("tre.not_loaded", "_not_load: ", r"^(?P<what>param|ckpt)_not_load: (?P<names_text>\[.{0,4000})"),
    _message(
        "tft.continued",
        "uce wrapper repair complete",
        r"uce wrapper repair complete initial_epoch: ?(?P<epoch>\d+), cb_initial_step: ?(?P<initial_step>\d+)",
    ),
    known(
        "error.reported",
        "uce wrapper ",
        r"^uce wrapper (?:caught|report) (?:RuntimeError )?"
        r"(?P<error>UCEError|HCCEError|SuspectRemoteError|ForceStopError)",
    ),
    known(
        "error.other",
        "enter MindIO TTP process",
        r"^uce wrapper caught (?:other RuntimeError|RuntimeError but uce not enable|BaseException error), "
        r"enter MindIO TTP",
    ),
    _message(
        "error.repairable",
        "HBM_MULTI_BIT_ECC_ERROR",
        r"UCEError of type HBM_MULTI_BIT_ECC_ERROR (?P<what>occurs|but can not repair), {0,80}"
        r"hbm_error_time=(?P<error_time>-?\d+), {0,80}optimize_start=(?P<begin>-?\d+), {0,80}"
        r"optimizer_end=(?P<end>-?\d+)(?:, can_repair=(?P<can_repair>\w+))?",
    ),
    known(
        "train.not_finite",
        "There is ",
        r"^(?:\w{1,40}Error: )?There is (?P<what>nan|inf) in (?P<where_text>[^:]{1,100}?) "
        r"with value (?P<value_text>\S{1,60}),",
    ),
    known(
        "train.not_finite",
        "loss is NAN or INF",
        r"^(?:\w{1,40}Error: )?In epoch: (?P<epoch>\d{1,18}) step: (?P<step_in_epoch>\d{1,18}), loss is NAN or INF",
    ),
    known(
        "train.not_finite",
        "device_accum_local_loss",
        r"^(?:\w{1,40}Error: )?device_accum_local_loss of `(?P<where_text>[^`]{1,100})` is (?P<value_text>[^,]{1,60}),",
    ),
    known(
        "train.evaluated",
        "Eval result: ",
        r"^Eval result: epoch (?P<epoch>\d{1,18}), metrics: (?P<metrics_text>.{1,400})",
    ),
    known("train.early_stop", "early stopping", r"^Epoch (?P<epoch>\d{1,18}): early stopping$"),
    _message("process.exception", "Callback on exception is called", r"Callback on exception is called"),
    _message("process.sigterm", "Kill this process with SIGTERM", r"Kill this process with SIGTERM"),
    *REFUSALS,
)


class MindSporeLogReader(LogReader):
    """Lines of a worker's log. ``tz`` is the zone of the times in the log, None the local one.

    Statements about a device have the kinds of the device's own logs (``device.*``).
    ``train.loss`` has no time, and its step is counted inside the epoch (``step_in_epoch``), so the event's ``step``,
    which counts over the whole job, stays empty. ``loss_text`` is as printed, ``loss`` the number, if it is one.
    """

    name = "mindspore"
    own_rank = True

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether the framework's prefix or a loss is among the lines."""
        return any(has_prefix(line) or line.startswith("epoch: ") for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        prefixed = split_prefix(line, self._wall)
        event = find_event(_TABLE, prefixed.message, prefixed.wall_ns, prefixed.pid)
        if event is None:  # what MindSpore's own words say comes first: they may quote those of the device
            return of_framework(line, prefixed)
        if event.kind != _LOSS:
            return event
        return replace(event, fields={**event.fields, "loss": _number(str(event.fields["loss_text"]))})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
