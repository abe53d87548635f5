"""Reader of losses as PyTorch scripts print them, from tutorials to trainers.

A script may count from 0 or from 1, its number may be a step of the job or of an epoch, and the loss a mean. So these
lines are shown, and judge nothing: an event has the number as ``printed_step`` and no step of the job. torchtitan is
the exception: it counts from 1 and prints the step's own loss. Facts: public logs and sources of
pytorch/examples, nanoGPT, minGPT, build-nanogpt, torchtitan, Hugging Face's Trainer and Lightning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.step_fields import number_of
from chaos.observe.logs.losses.training_line import decimals
from chaos.observe.logs.mindformers_log import STEP

LOSS = "train.loss"
"""The kind of a line with a loss whose step of the job is not known."""

_NUMBER = r"-?(?:\d{1,310}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,4})?|inf|nan)(?![\w.\ufffd])"
_LOSS = rf"(?:train(?:ing)?[_ ])?loss(?:[:=] {{0,8}}| {{1,8}})(?P<loss>{_NUMBER})"
_SEPARATOR = r"(?: {0,4}[:,|-] {0,4}|\t| {1,4})"
_COUNT = r"(?P<word>(?:global[ _])?step|iter(?:ation)?|batch)s?"
_OF = r"(?: {0,4}(?:/|of) {0,4}(?P<of>\d{1,12}))?"
_LOGGER = (
    r"(?:[A-Z]{4,8}:[\w.-]{1,100}:"
    r"|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,6})?"
    r"(?:\]\[[\w.]{1,100}\]\[[A-Z]{4,8}\]| - [\w.]{1,100} - [A-Z]{4,8}) - )?"
    r"(?:\[(?:RANK|rank) \d{1,9}\] )?"
)
_COUNTED = re.compile(
    rf"{_LOGGER}(?:(?:train(?:ing)? )?epoch:? {{0,4}}\[?(?P<epoch>\d{{1,9}})(?:/\d{{1,9}})?\]?{_SEPARATOR})?"
    rf"{_COUNT}(?:[:=#] {{0,8}}| {{1,8}})\[?(?P<step>\d{{1,12}}){_OF}\]?{_SEPARATOR}{{1,2}}{_LOSS}",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    rf"{_LOGGER}epoch:? {{0,4}}\[?(?P<epoch>\d{{1,9}})(?: ?/ ?\d{{1,9}})?\]?{_SEPARATOR}{{1,2}}{_LOSS}", re.IGNORECASE
)
_EXAMPLE = re.compile(
    r"Train Epoch: (?P<epoch>\d{1,9}) \[(?P<samples>\d{1,12})/\d{1,12} \( {0,2}\d{1,3}%\)\]\s{1,16}[Ll]oss(?:: |=)"
    rf"(?P<loss>{_NUMBER})"
)
_IMAGENET = re.compile(
    r"Epoch: \[(?P<epoch>\d{1,9})\]\[ {0,9}(?P<step>\d{1,9})/(?P<of>\d{1,9})\]\s(?:[^\n]{0,400}?\s)?Loss "
    rf"(?P<loss>{_NUMBER}) \("
)
_BAR = re.compile(
    r"Epoch (?P<epoch>\d{1,9}): {1,4}(?:\d{1,3}%)? {0,4}\|[^|]{0,400}\| (?P<step>\d{1,12})/(?P<of>\d{1,12}|\?) "
    rf"\[[^\]]{{0,400}}?\b(?:train_)?loss(?:_step)?=(?P<loss>{_NUMBER})"
)
_TITAN = re.compile(
    r"(?:\[titan\] )?(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d),(?P<milli>\d{3}) - [\w.]{1,100} - INFO - "
    rf"step: {{1,8}}(?P<step>\d{{1,12}})(?:/\d{{1,12}} = [\d.]{{1,12}}%)? {{2}}loss: {{1,8}}(?P<loss>{_NUMBER})"
    rf"(?: {{2}}grad_norm: {{1,8}}(?P<norm>{_NUMBER}))? {{2}}memory: "
)
_EVALUATED = re.compile(
    rf"{_LOGGER}(?:(?:step|iter) (?P<step>\d{{1,12}}): |eval: )train loss (?P<loss>{_NUMBER}), val loss "
    rf"(?P<other>{_NUMBER})",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"'(?P<name>\w{1,100})': '?(?P<value>[^,'}]{1,100})'?(?=[,}])")
_MOST_ENTRIES = 100
_ENTRIES = {"learning_rate": "lr", "grad_norm": "global_norm", "epoch": "epoch"}
_FORMS = (_EXAMPLE, _IMAGENET, _BAR, _COUNTED, _EPOCH)


class ScriptLogReader(LogReader):
    """Losses that scripts print: ``train.loss``, ``train.evaluated`` and ``train.summary``.

    ``loss_text`` is as printed, ``loss`` the number, ``places`` the digits after its decimal point; ``printed_step``,
    ``printed_of``, ``epoch`` and ``samples`` are the numbers beside it. ``tz`` is the zone of the times in the log.
    """

    name = "script"
    own_rank = True
    asked_last = True  # a reader of the user's own knows a script better

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether a line with a loss is among them."""
        return any(self.read(line) is not None for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        if "loss" not in line and "Loss" not in line:
            return None
        if "\r" in line:  # a bar is drawn over itself: what was drawn last counts
            line = line.rstrip("\r").rpartition("\r")[2]
        if line.startswith("{'"):
            return _entries(line)
        if match := _TITAN.match(line):
            return self._titan(match)
        if match := _EVALUATED.match(line):
            return LogEvent("train.evaluated", fields=_numbers(match) | {"metrics_text": match[0][-200:]})
        for form in _FORMS:
            if match := form.match(line):
                return LogEvent(LOSS, fields=_numbers(match) | _loss_fields(match["loss"]))
        return None

    def _titan(self, match: re.Match[str]) -> LogEvent:
        wall_ns = self._wall.ns(match["date"], match["time"], int(match["milli"]) * 1000)
        norm = {} if match["norm"] is None else {"global_norm": float(match["norm"])}
        return LogEvent(STEP, wall_ns, None, int(match["step"]) or None, None, _loss_fields(match["loss"]) | norm)


def _loss_fields(text: str) -> dict[str, Any]:
    return {"loss_text": text, "loss": float(text), "places": decimals(text)}


def _numbers(match: re.Match[str]) -> dict[str, Any]:
    """Return the numbers beside a loss."""
    groups = match.groupdict()
    names = {"step": "printed_step", "of": "printed_of", "epoch": "epoch", "samples": "samples"}
    return {names[name]: int(text) for name, text in groups.items() if name in names and text and text.isdecimal()}


def _entries(line: str) -> LogEvent | None:
    """Return the event of a dictionary that Hugging Face's Trainer prints: its entries are read as text, not run."""
    entries: dict[str, str] = {}
    at = 1
    while len(entries) < _MOST_ENTRIES and (match := _ENTRY.match(line, at)):
        entries[match["name"]] = match["value"]
        at = match.end()
        if line.startswith("}", at):
            break
        at += 2  # the comma and the space
    else:
        return None
    fields: dict[str, Any] = {}
    for name, own in _ENTRIES.items():
        number = number_of(entries.get(name, ""))
        if number is not None:
            fields[own] = number
    if (step := entries.get("step", "")).isdecimal() and len(step) <= 18:
        fields["printed_step"] = int(step)
    if "train_runtime" in entries or any(name.startswith("eval_") for name in entries):
        kind = "train.summary" if "train_runtime" in entries else "train.evaluated"
        return LogEvent(kind, fields=fields | {"metrics_text": line[1:at][:400]})
    text = entries.get("loss", "")
    if re.fullmatch(_NUMBER, text) is None:
        return None
    return LogEvent(LOSS, fields=fields | _loss_fields(text))
