"""Reader of the lines of Megatron and of MindSpeed, which prints the same: steps, saves, loads, evaluations.

A step is `` iteration        5/      12 | consumed samples: … | lm loss: 6.930000E-01 | … |``. From Megatron 0.4 on a
time in brackets stands before it, in MindSpeed's FSDP2 trainer ``INFO [2026-06-22 19:25:37] >>``. The last rank alone
prints it. The loss is the *mean* since the line before, so it is the step's own only where each step has a line
(``--log-interval 1``). Megatron leaves out a mean that is not a number, and the loss of a step whose update was
skipped. Facts: the source of Megatron 23.04 to 2026-08, of MindSpeed-LLM 2026-08, and public logs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.step_fields import number_of
from chaos.observe.logs.mindformers_log import STEP
from chaos.observe.logs.patterns import find_event, known

MARK = " iteration"
"""Text in every line of a step, where no launcher's tag has taken the space away."""

_HEAD = re.compile(
    r"(?:(?P<level>[A-Z]{4,8}) \[(?P<log_date>\d{4}-\d\d-\d\d) (?P<log_time>\d\d:\d\d:\d\d)[^\]]{0,400}\] >> "
    r"|[A-Z]{4,8}:[\w.]{1,200}:)?"
    r" {0,4}(?:\[(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d)(?:\.(?P<micro>\d{6}))?\] )?"
)
_STEP = re.compile(r"iteration {1,12}(?P<step>\d{1,9})/ {0,12}(?P<steps>\d{1,9}) \| consumed samples: {0,12}\d")
_PART = re.compile(r" ?(?P<name>[A-Za-z_][\w ()/%.-]{0,60}): {0,20}(?P<value>[^| ][^|]{0,60}?) ?")
_MOST_PARTS = 60
_LOSS = re.compile(
    r"(?P<whole>-?\d{1,310})(?:\.(?P<fraction>\d{1,20}))?(?:[eE](?P<exponent>[-+]?\d{1,4}))?|-?inf|nan", re.IGNORECASE
)
_NAMES = {
    "consumed samples": "consumed_samples",
    "consumed tokens": "consumed_tokens",
    "global batch size": "global_batch_size",
    "elapsed time per iteration (ms)": "step_ms",
    "learning rate": "lr",
    "loss scale": "loss_scale",
    "grad norm": "global_norm",
    "throughput per GPU (TFLOP/s/GPU)": "tflops_per_npu",
    "number of skipped iterations": "skipped_iterations",
    "number of nan iterations": "nan_iterations",
}
_MAIN = ("lm_loss", "loss")
_AUXILIARY = re.compile(r"(?:mtp|aux|indexer|load_balancing|z|router|seq_aux|global_aux)\w{0,40}")

_STEP_TEXT = r"(?P<step>\d{1,18})"
_PATH = r"(?P<path_text>\S.{0,4000}?)"
_TABLE = (
    known(
        "checkpoint.begin",
        "saving checkpoint at",
        rf"^saving checkpoint at iteration {{1,12}}{_STEP_TEXT} to {_PATH}(?: in (?P<format>\w{{1,40}}) format)?$",
    ),
    known(
        "checkpoint.written",
        "successfully saved",
        rf"^successfully saved (?:(?P<what>local) )?checkpoint (?:from|at) iteration {{1,12}}{_STEP_TEXT}"
        rf"(?: to {_PATH})?(?: \[ t .{{1,100}}\])?$",
    ),
    known(
        "checkpoint.scheduled",
        "async checkpoint save",
        rf"^(?:scheduled an async checkpoint save|async checkpoint save scheduled \(not completed yet\)) at iteration "
        rf"{{1,12}}{_STEP_TEXT} to {_PATH}$",
    ),
    known(
        "checkpoint.load_begin",
        "loading ",
        rf"^loading (?:(?P<what>release|distributed|release distributed) )?checkpoint from {_PATH}"
        rf"(?: at iteration {_STEP_TEXT})?$",
    ),
    known(
        "checkpoint.load_end",
        "successfully loaded",
        rf"^successfully loaded checkpoint from {_PATH}(?: \[ t .{{1,100}}\])? at iteration {_STEP_TEXT}$",
    ),
    known("checkpoint.version", "checkpoint version", r"^checkpoint version (?P<version_text>[\d.]{1,20})$"),
    known("checkpoint.missing", "metadata file", rf"^WARNING: could not find the metadata file {_PATH}$"),
    known("checkpoint.damaged", "metadata file", rf"^ERROR: Invalid metadata file {_PATH}\. Exiting"),
    known(
        "checkpoint.damaged",
        "metadata file",
        rf"^A metadata file exists but unable to load iteration from checkpoint {_PATH}, exiting",
    ),
    known(
        "checkpoint.damaged",
        "Unable to load",
        rf"^Unable to load (?P<what>optimizer|rng state) from checkpoint {_PATH}\. Specify",
    ),
    known("resume.nothing", "will not load any", r"^will not load any checkpoints and will start from random"),
    known(
        "train.exits",
        "exiting program",
        r"^\[exiting program (?:at iteration (?P<step>\d{1,18})|after (?P<reason_text>[^\]]{1,100}))\] datetime: "
        r"(?P<moment_text>\S{10} \S{8,15})",
    ),
    known(
        "train.phase",
        "] datetime: ",
        r"^\[(?!exiting program)(?P<what_text>[^\]]{1,200})\] datetime: (?P<moment_text>\S{10} \S{8,15})",
    ),
    known(
        "train.evaluated",
        " loss at iteration",
        rf"^validation(?:-\S{{1,60}})? loss at iteration {_STEP_TEXT}(?: on (?P<what>\w{{1,40}}) set)? \| "
        r"(?P<metrics_text>.{1,400})",
    ),
    known(
        "train.memory",
        "memory (MB)",
        r"^\[Rank (?P<rank>\d{1,9})\] \(after (?P<iterations>\d{1,18}) iterations\) memory \(MB\) \| "
        r"(?P<sizes_text>.{1,400})",
    ),
    known(
        "train.timer",
        "....",
        r"^(?P<what>[a-z][\w/-]{0,80}) \.{2,80}: \((?P<least_ms>\d[\d.]{0,20}), (?P<most_ms>\d[\d.]{0,20})\)$",
    ),
)


class MegatronLogReader(LogReader):
    """Lines of Megatron and MindSpeed. ``tz`` is the zone of the times in the log, None the local one.

    ``train.step`` is the line of a step, which counts over the whole job. ``loss_text`` is as printed, ``loss`` the
    number and ``places`` the digits after its decimal point, had it been written without an exponent; all three are
    missing where the line has no loss. ``loss`` is ``lm loss``, else ``loss``, else the only one that is not auxiliary.
    Every loss is a field of its own, too. ``skipped_iterations`` and ``nan_iterations`` count since the line before.
    """

    name = "megatron"
    own_rank = True

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether the line of a step, of a save or of a load is among the lines."""
        strong = (STEP, "checkpoint.begin", "checkpoint.written", "checkpoint.load_begin", "checkpoint.load_end")
        return any((event := self.read(line)) is not None and event.kind in strong for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        head = _HEAD.match(line)
        assert head is not None  # it may be empty
        wall_ns = self._moment(head["date"] or head["log_date"], head["time"] or head["log_time"], head["micro"])
        step = _STEP.match(line, head.end())
        if step is not None:
            return LogEvent(STEP, wall_ns, None, int(step["step"]) or None, None, _step_fields(line[step.start() :]))
        event = find_event(_TABLE, line[head.end() :].rstrip(), wall_ns, None)
        if event is None or "moment_text" not in event.fields:
            return event
        date, _, time = str(event.fields["moment_text"]).partition(" ")
        clock, _, micro = time.partition(".")
        return LogEvent(event.kind, self._moment(date, clock, micro), None, event.step, None, event.fields)

    def _moment(self, date: str | None, time: str | None, micro: str | None) -> int | None:
        if not date or not time or not (micro or "0").isdecimal():
            return None
        return self._wall.ns(date, time, int(micro or 0))


def _step_fields(text: str) -> dict[str, Any]:
    """Return the fields of the line of a step. Only a part that ends with a bar is whole."""
    fields: dict[str, Any] = {}
    losses: dict[str, str] = {}
    for part in text.split("|", _MOST_PARTS)[1:-1]:
        match = _PART.fullmatch(part)
        if match is None:
            continue
        name, value = match["name"], match["value"]
        if name in _NAMES:
            number = number_of(value)
            if number is not None:
                fields[_NAMES[name]] = number
        elif name.lower().endswith("loss") and _LOSS.fullmatch(value):
            losses[name.lower().replace(" ", "_").replace("-", "_")] = value
    fields |= {name: float(value) for name, value in losses.items() if name != "loss"}
    if (text_of_loss := _main(losses)) is not None:
        fields |= {"loss_text": text_of_loss, "loss": float(text_of_loss), "places": places_of(text_of_loss)}
    return fields


def _main(losses: dict[str, str]) -> str | None:
    for name in _MAIN:
        if name in losses:
            return losses[name]
    others = [value for name, value in losses.items() if not _AUXILIARY.fullmatch(name)]
    return others[0] if len(others) == 1 else None


def places_of(loss: str) -> int:
    """Return the digits after the decimal point of a number, written without an exponent; -1 for no finite number.

    ``6.930000E-01`` has seven digits, all of them after the point.
    """
    match = _LOSS.fullmatch(loss)
    if match is None or match["whole"] is None:
        return -1
    return max(0, len(match["fraction"] or "") - int(match["exponent"] or 0))
