"""Fields of the line of a step beyond step and loss, and fields of a progress bar.

They do not decide whether a line is a training line; ``chaos.observe.logs.losses.training_line`` does. A field that a
version leaves out (``lr`` when it is unknown, the throughput before 1.5) is left out here. Facts: the source of
MindFormers 2.1, documents of 1.0 to 2.1.
"""

from __future__ import annotations

import re

from chaos.observe.logs.losses.training_line import TrainingLine

_NUMBER = r"[-+.0-9a-zA-Z]{1,320}"
# One number, alone or in brackets. The documents also show `[1 31049]`, which is none.
_ONE = rf"(?:(?P<number>{_NUMBER})|\[ {{0,4}}(?P<inside>{_NUMBER}) {{0,4}}\])(?=,| {{0,4}}\}}|\s{{0,4}}$)"
_WHOLE = r"(?P<number>[0-9]{1,18})"
_FIELDS = {
    "consumed_samples": re.compile(r"\bconsumed_samples: {0,8}" + _WHOLE),
    "global_batch_size": re.compile(r"\bglobal_batch_size: {0,8}" + _WHOLE),
    "step_ms": re.compile(r"\bper_step_time: {0,8}" + _WHOLE + "ms"),
    "lr": re.compile(r"\blr: {0,8}" + _ONE),
    "loss_scale": re.compile(r"\bloss_scale: {0,8}" + _ONE),
    "global_norm": re.compile(r"\b(?:global_norm|grad_norm):? {0,8}" + _ONE),
    "tflops_per_npu": re.compile(r"\b(?:train_throughput_per_npu|throughput): {0,8}(?P<number>[0-9.]{1,40})T"),
}
_NORM_TEXT = re.compile(r"\b(?:global_norm|grad_norm):? {0,8}(?P<text>\[[^]]{0,200}\])")
_OVERFLOW = re.compile(r"\boverflow cond: {0,8}\[? {0,4}(?P<text>True|False)")
_SEPARATE = re.compile(
    rf"\b(?P<name>(?:lm|load_balancing|indexer|mtp(?:[-_][0-9]{{1,4}})?)[-_]loss): {{0,12}}(?P<number>{_NUMBER})"
    rf"(?=,| {{0,4}}\}}|\s{{0,4}}$)"
)
_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}\.[0-9])% \|$")
_BAR_END = re.compile(r"[^|]{0,200}\| {0,8}(?P<rate>[0-9.]{1,40}) samples/s/p {1,4}(?P<left>[^}]{1,60}?) {0,4}\}")


def step_fields(line: str, parts: TrainingLine) -> dict[str, object]:
    """Return the fields of the line of a step, as :class:`.mindformers_log.MindFormersLogReader` lists them."""
    begin = 0 if parts.step is None else parts.step[0]
    fields: dict[str, object] = {}
    for name, pattern in _FIELDS.items():
        match = pattern.search(line, begin)
        if match is None:
            continue
        groups = match.groupdict()
        value = number_of(groups["number"] or groups["inside"] or "")
        if value is not None:
            fields[name] = value
    if "global_norm" not in fields and (match := _NORM_TEXT.search(line, begin)):
        fields["global_norm_text"] = match["text"]
    if match := _OVERFLOW.search(line, begin):
        fields["overflow"] = match["text"] == "True"
    for match in _SEPARATE.finditer(line, begin):
        fields[match["name"].replace("-", "_")] = number_of(match["number"])
    return fields


def bar_fields(line: str, parts: TrainingLine) -> dict[str, object]:
    """Return the fields of a progress bar; none for a bar that breaks off."""
    percent, rest = _PERCENT.search(line[: parts.end]), _BAR_END.match(line, parts.end)
    if percent is None or rest is None:
        return {}
    return {
        "percent": float(percent["number"]),
        "samples_per_second_per_npu": number_of(rest["rate"]),
        "left_text": rest["left"],
    }


def number_of(text: str) -> int | float | None:
    """Return the number in a text; None for a text without a number, such as ``unavailable`` and ``None``."""
    if text.isdecimal():
        return int(text) if len(text) <= 18 else None
    try:
        return float(text)
    except ValueError:
        return None
