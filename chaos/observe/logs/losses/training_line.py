"""The lines that MindFormers prints for each step: their parts, and the places of these in the line.

Two versions print them, after the same prefixes::

    { Epoch:[  1/  2], step:[    3/    8], loss:[1.438142/1.455182], per_step_time: 111ms, …        1.x and 2.x
    { step:[    2/   10], consumed_samples: 16, global_batch_size: 8, loss:  11.755612, …           2.x, PyNative

A loss that is no number is padded to five characters: ``loss:[  nan/  nan]``, and its mean stays so for the rest of
the epoch. A loss that exploded is written out, with up to 309 digits. PyNative's ranks outside the last pipeline
stage know neither loss nor samples, and print ``N/A`` and ``None``. A progress bar follows each of the first kind.
All parts that are read stand before the time of the step, so the text behind it may differ between versions.
Facts: logs of MindFormers 2.1, source and documents of 0.8 to 2.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.observe.logs.framework_prefix import match_mindformers, time_of

MARK = "step:["
"""Text in every line with the loss of a step."""

BAR = "samples/s/p"
"""Text in every progress bar."""

_LOSS = r"(?P<loss>-?[0-9]{1,310}(?:\.[0-9]{1,9})?(?:[eE][-+]?[0-9]{1,3})?|-?inf|nan|N/A(?: \([^)]{0,200}\))?)"
_OF_EPOCH = re.compile(
    r"\{ Epoch:\[ {0,12}(?P<epoch>[0-9]{1,6})/ {0,12}[0-9]{1,6}\], "
    r"step:\[ {0,12}(?P<step>[0-9]{1,9})/ {0,12}(?P<steps>[0-9]{1,9})\], "
    r"loss:(?: {1,4}" + _LOSS + r"|"
    r"\[ {0,4}" + _LOSS.replace("?P<loss>", "?P<current>") + r"/ {0,4}[-+.0-9a-zA-Z]{1,320}\]), "
)
_OF_JOB = re.compile(
    r"\{ step:\[ {0,12}(?P<step>[0-9]{1,9})/ {0,12}[0-9]{1,9}\], "
    r"(?:(?!loss:)[a-z_]{1,40}: {0,12}(?:[0-9.]{1,20}|None), ){0,4}loss: {0,12}" + _LOSS + r", "
)
_BAR = re.compile(r" {0,5}[0-9]{1,3}\.[0-9]% \|")
_PLAIN = re.compile(r"-?[0-9]+(?:\.(?P<fraction>[0-9]+))?")

Spot = tuple[int, int]
"""Begin and end of a part of a line, in characters."""


@dataclass(frozen=True)
class TrainingLine:
    """Places of the parts of one line. ``end`` is where the part ends that decides about everything here.

    ``epoch`` and ``steps`` (steps of an epoch) are None where the step counts over the whole job. ``time`` is where the
    23 characters of date and time begin, None in a line without a prefix. A progress bar has no ``step``. ``loss`` is
    None where the rank says that it has none.
    """

    end: int
    time: int | None
    step: Spot | None = None
    epoch: Spot | None = None
    steps: Spot | None = None
    loss: Spot | None = None


def read_training_line(line: str) -> TrainingLine | None:
    """Split a line; return None if it is neither the loss of a step nor a progress bar."""
    if MARK not in line and BAR not in line:
        return None
    prefix = match_mindformers(line)
    begin = prefix.end() if prefix else 0
    time = time_of(prefix) if prefix else None
    if match := _OF_EPOCH.match(line, begin):
        loss = match.span("current") if match["current"] is not None else match.span("loss")
        return TrainingLine(
            match.end(), time, match.span("step"), match.span("epoch"), match.span("steps"), _present(line, loss)
        )
    if match := _OF_JOB.match(line, begin):
        return TrainingLine(match.end(), time, match.span("step"), None, None, _present(line, match.span("loss")))
    if BAR in line and (match := _BAR.match(line, begin)):
        return TrainingLine(match.end(), time)
    return None


def step_of_line(line: str, parts: TrainingLine) -> int | None:
    """Return the step, counted over the whole job. None for a progress bar, and for a line that counts from nothing."""
    if parts.step is None:
        return None
    step = int(line[slice(*parts.step)])
    if parts.epoch is not None and parts.steps is not None:
        step += (int(line[slice(*parts.epoch)]) - 1) * int(line[slice(*parts.steps)])
    return step if step > 0 else None


def decimals(loss: str) -> int:
    """Return the number of digits after the decimal point; -1 if not written out, such as ``nan`` and ``1e-05``."""
    plain = _PLAIN.fullmatch(loss)
    return -1 if plain is None else len(plain["fraction"] or "")


def _present(line: str, loss: Spot) -> Spot | None:
    return None if line.startswith("N/A", loss[0]) else loss
