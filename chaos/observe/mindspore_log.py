"""Reader of a worker's log, MindSpore or MindFormers: losses, recovery handlers, errors, compile cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

from chaos.observe.framework_prefix import has_prefix, split_prefix
from chaos.observe.log_event import LogEvent
from chaos.observe.patterns import find_event, known
from chaos.observe.wall_time import WallTime

_LOSS = "train.loss"
_TABLE = (
    known(
        _LOSS,
        ", loss is ",
        r"^epoch: (?P<epoch>\d{1,18}) step: (?P<step_in_epoch>\d{1,18}), loss is (?P<loss_text>\S+)",
    ),
    known(
        "train.epoch_time",
        "Train epoch time",
        r"Train epoch time: +(?P<epoch_ms>[\d.]+) ms, per step time: +(?P<step_ms>[\d.]+) ms",
    ),
    known(
        "checkpoint.saved",
        "Finish saving ckpt",
        r"Finish saving ckpt of epoch (?P<epoch>\d+) step (?P<step_in_epoch>\d+) using (?P<seconds>[\d.]+) seconds",
    ),
    known(
        "tft.handler_begin",
        "Enter _",
        r"Enter _(?P<handler>save_checkpoint_on_failure|rename_save_result|"
        r"tft_(?:stop|clean|repair)_callback(?=,| device_id| repair type|$)|tft_rebuild_groups(?=,))",
    ),
    # That is how MindSpore writes the end of this one.
    known("tft.handler_end", "Enter _tft_rebuild_groups ok", r"Enter _(?P<handler>tft_rebuild_groups) ok"),
    known(
        "tft.handler_end",
        "Finish _",
        r"Finish _(?P<handler>save_checkpoint_on_failure|rename_save_result|tft_\w+?_callback)",
    ),
    known("tft.exit", "Enter mindio ttp exit process", r"Enter mindio ttp exit process"),
    known("tft.replicas", "Set TFT replica with dp", r"Set TFT replica with dp: \((?P<dp_list>[\d, ]*)\)"),
    known(
        "tft.repaired",
        "uce wrapper caught repair finish",
        r"REPAIR STEP: ?(?P<step>\d+) ?batch_num: ?(?P<batch_num>\d+)",
    ),
    known(
        "tre.thrown",
        "is greater equal than threshold",
        r"Current global norm \[?(?P<norm>[-+.\deEinfa]+)\]? is greater equal than threshold "
        r"(?P<threshold>[-+.\deE]+), stop training",
    ),
    known(
        "tre.again",
        "is still greater or equal than threshold",
        r"The global norm \[?(?P<norm>[-+.\deEinfa]+)\]? of step (?P<step>\d+) is still greater or equal than "
        r"threshold (?P<threshold>[-+.\deE]+), continue training",
    ),
    known("tft.resumed", "Resume training after TREError", r"Resume training after TREError from step (?P<step>\d+)"),
    known("error.classified", "TREError occurred", r"""(?<!['"])(?P<error>TREError) occurred"""),
    known(
        "error.classified",
        "Error error occurs when execute",
        r"""(?<!['"])(?P<error>UCEError|HCCEError|SuspectRemoteError|ForceStopError) error occurs when execute"""
        r"(?:, error_code=(?P<code>\d+))?",
    ),
    known("error.classified", " FINISH", r"""(?<!['"])\b(?P<error>(?:ARF|STEP) FINISH)\b"""),
    known(
        "compile.cache_hit", "Use the compilation cache", r"Use the compilation cache and execute the backend actions"
    ),
    known("compile.cache_miss", "compilation actions", r"[Ee]xecute all the compilation actions"),
    known(
        "watchdog.error",
        "HcclWatchdogThread catch an error",
        r"catch an error: (?P<text>.*?), rank id: ?(?P<rank>\d*), group name: ?(?P<group>\S*)",
    ),
    known("watchdog.stop", "Watchdog thread got hccl error", r"try to stop training\. rank: ?(?P<rank>\d*)"),
    known("watchdog.destroy", "Try to destroy all streams", r"Try to destroy all streams by watch dog thread"),
    known("collective.failed", "Launch kernel failed", r"Launch kernel failed: ?(?P<kernel>\S+)"),
    known(
        "collective.wait_failed",
        "wait receiving",
        r"Ring ReduceScatter wait receiving \[(?P<peer>\d+),(?P<request>\d+)\] failed",
    ),
    known("process.exception", "Callback on exception is called", r"Callback on exception is called"),
    known("process.sigterm", "Kill this process with SIGTERM", r"Kill this process with SIGTERM"),
)


class MindSporeLogReader:
    """Lines of a worker's log. ``tz`` is the zone of the times in the log, None the local one.

    ``train.loss`` has no time, and its step is counted inside the epoch (``step_in_epoch``), so the event's ``step``,
    which counts over the whole job, stays empty. ``loss_text`` is as printed, ``loss`` the number, if it is one.
    """

    name = "mindspore"

    def __init__(self, tz: tzinfo | None = None) -> None:
        self._wall = WallTime(tz)

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Whether the framework's prefix or a loss is among the lines."""
        return any(has_prefix(line) or line.startswith("epoch: ") for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """The event of a line, None when it is not one of the lines known."""
        prefixed = split_prefix(line, self._wall)
        event = find_event(_TABLE, prefixed.message, prefixed.wall_ns, prefixed.pid)
        if event is None or event.kind != _LOSS:
            return event
        return replace(event, fields={**event.fields, "loss": _number(str(event.fields["loss_text"]))})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
