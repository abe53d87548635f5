"""Reader of the lines that MindFormers itself writes: losses, steps, progress, checkpoints, resuming."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo

from chaos.observe.framework_prefix import match_mindformers
from chaos.observe.log_event import LogEvent
from chaos.observe.patterns import find_event, known
from chaos.observe.training_line import TrainingLine, decimals, read_training_line, step_of_line
from chaos.observe.wall_time import WallTime

STEP = "train.step"
PROGRESS = "train.progress"

_NUMBER = r"[-+.0-9a-zA-Z]{1,40}"
_REST = {
    "step_ms": re.compile(r"per_step_time: {0,8}([0-9]{1,12})ms"),
    "lr": re.compile(rf"\blr: ?({_NUMBER})"),
    "loss_scale": re.compile(rf"loss_scale: ?({_NUMBER})"),
    "global_norm": re.compile(rf"(?:global_norm|grad_norm):? {{0,8}}\[? {{0,4}}({_NUMBER})"),
}
_TABLE = (
    known(
        "checkpoint.written",
        "successfully sync saved",
        r"successfully sync saved checkpoint from step '(?P<step>\d{1,18})' to",
    ),
    known("checkpoint.cost", "Save checkpoint cost time", r"Save checkpoint cost time: (?P<seconds>[\d.]{1,30})s"),
    known("checkpoint.loaded", "Loading Time Cost", r"Loading Time Cost: (?P<seconds>[\d.]{1,30}) s"),
    known("checkpoint.latest", "latest valid iteration", r"The latest valid iteration is (?P<step>\d{1,18})"),
    known("resume.base", "Basic resume checkpoint", r"Basic resume checkpoint: ?(?P<path_text>\S.{0,4000})"),
    known("resume.chosen", "Get resume checkpoint", r"Get resume checkpoint: ?(?P<path_text>\S.{0,4000})"),
    known("resume.nothing", "No checkpoint could be resumed", r"No checkpoint could be resumed"),
    known("resume.data_skipped", "dataset skip", r"dataset skip (?P<steps>\d{1,18}) steps"),
    known("train.nan", "There is nan in loss", r"There is nan in loss with value (?P<loss_text>\S{1,60})"),
    known(
        "train.last_stage_only", "pipeline stages:", r"pipeline stages: (?P<stages>\d{1,9}) > 1, the loss on the last"
    ),
)


class MindFormersLogReader:
    """Lines of MindFormers 1.x and 2.x. ``tz`` is the zone of the times in the log, None the local one.

    ``train.step`` is the line of a step: its ``step`` counts over the whole job, ``loss_text`` is as printed, ``loss``
    the number (None on a rank that has none), ``places`` the digits after its decimal point. ``step_ms``, ``lr``,
    ``loss_scale`` and ``global_norm`` are there where the line has them as numbers.
    """

    name = "mindformers"

    def __init__(self, tz: tzinfo | None = None) -> None:
        self._wall = WallTime(tz)

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Whether MindFormers' own prefix is among the lines."""
        return any(match_mindformers(line) for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """The event of a line, None when it is not one of the lines known."""
        parts = read_training_line(line)
        if parts is not None:
            return self._step(line, parts)
        prefix = match_mindformers(line)
        if prefix is None:
            return None
        return find_event(_TABLE, line[prefix.end() :], self._time(line, prefix.start("date")), None)

    def _step(self, line: str, parts: TrainingLine) -> LogEvent | None:
        wall_ns = self._time(line, parts.time)
        if parts.step is None:
            return LogEvent(PROGRESS, wall_ns)
        step = step_of_line(line, parts)
        if step is None:
            return None
        text = None if parts.loss is None else line[slice(*parts.loss)]
        fields: dict[str, object] = {"loss_text": text, "loss": None, "places": -1}
        if text is not None:
            fields |= {"loss": float(text), "places": decimals(text)}
        for name, pattern in _REST.items():
            match = pattern.search(line, parts.end - 2)
            value = _number(match[1]) if match else None
            if value is not None:
                fields[name] = value
        return LogEvent(STEP, wall_ns, None, step, None, fields)

    def _time(self, line: str, at: int | None) -> int | None:
        """Nanoseconds of ``2026-11-21 01:27:12,420`` at this place."""
        if at is None:
            return None
        return self._wall.ns(line[at : at + 10], line[at + 11 : at + 19], int(line[at + 20 : at + 23]) * 1000)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
