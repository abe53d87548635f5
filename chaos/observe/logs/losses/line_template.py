"""Recognise many lines at once by one line that was parsed slowly.

Whether a line is one of those of :mod:`chaos.observe.logs.losses.training_line`, and where its numbers stand, depends
only on its bytes up to ``TrainingLine.end``, and not on the value of any digit there. So every line that equals a known
line up to there, digits apart, has its numbers in the same places. That is a comparison of machine words for thousands
of lines at once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaos.observe.logs.losses.training_line import Spot, TrainingLine, decimals

Bytes = NDArray[np.uint8]
Indices = NDArray[np.int64]

OPENING = b"{("
"""Bytes that all lines of a template have in equal number, all before ``TrainingLine.end``."""

WIDEST = 512
"""Most bytes of a line that can be a template."""

_MOST_DIGITS = 15  # such a number is exact in a float64, and its division by a power of ten rounds as float() does
_WORD = 8


class Digits:
    """The bytes of many lines of one shape, with every digit as its value."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def __len__(self) -> int:
        return int(self._words.shape[1])

    def whole(self, begin: int, end: int) -> Indices:
        """Return the whole number at a place, for each line."""
        number = np.zeros(len(self), np.int64)
        for at in range(begin, end):
            number *= 10
            number += self._words[at // _WORD].view(np.uint8)[_BYTES[at % _WORD] :: _WORD]
        return number


_BYTES = range(_WORD) if sys.byteorder == "little" else range(_WORD - 1, -1, -1)


@dataclass(frozen=True)
class Values:
    """Values of the lines of one template. ``loss`` and ``places`` are as in chaos.observe.logs.losses.loss_columns."""

    step: NDArray[np.int64]
    loss: NDArray[np.float64]
    places: int


class Template:
    """The shape of one line, and the places of its numbers."""

    def __init__(self, prefix: bytes, parts: TrainingLine, loss: str) -> None:
        """``prefix`` is the line up to ``end``, ``parts`` in bytes, ``loss`` as printed (empty if there is none)."""
        self.parts, self.marks = parts, opening_in(prefix)
        self.width = -(-len(prefix) // _WORD) * _WORD
        shape, exact, over = (np.zeros(self.width, np.uint8) for _ in range(3))
        for at, byte in enumerate(prefix):
            digit = 0x30 <= byte <= 0x39
            shape[at] = 0x30 if digit else byte
            exact[at] = 0xF0 if digit else 0xFF
            over[at] = 6 if digit else 0
        self._shape = shape.view(np.uint64)[:, np.newaxis]
        self._exact, self._over = exact.view(np.uint64), over.view(np.uint64)
        self._item = np.dtype((np.void, self.width))
        self._loss = loss
        self._places = decimals(loss) if loss else -1

    def match(self, buffer: Bytes, starts: Indices) -> tuple[NDArray[np.bool_], Digits]:
        """Return which of the lines at ``starts`` have this shape, and the digits of these lines.

        ``buffer`` must go on for ``WIDEST`` bytes after the last start.
        """
        windows: NDArray[np.void] = np.ndarray((len(buffer) - self.width + 1,), self._item, buffer, 0, (1,))
        rows = windows[starts].view(np.uint64).reshape(len(starts), self.width // _WORD)
        words = np.bitwise_xor(rows.T, self._shape, order="C")
        # What should be equal is 0 now, a digit 0 to 9: with 6 more its high half is still 0. A carry into the next
        # byte comes only from one that is wrong itself.
        wrong = np.zeros(len(starts), np.uint64)
        more = np.empty_like(wrong)
        for word, exact, over in zip(words, self._exact, self._over, strict=True):
            if over or ~exact:
                np.add(word, over, out=more)
                more |= word
                more &= exact
                wrong |= more
            else:
                wrong |= word
        good = wrong == 0
        return good, Digits(words if good.all() else np.compress(good, words, axis=1))

    def values(self, digits: Digits) -> Values | None:
        """Return the numbers of matched lines. None for a template without a step."""
        parts = self.parts
        if parts.step is None:
            return None
        step = digits.whole(*parts.step)
        if parts.epoch is not None and parts.steps is not None:
            step += (digits.whole(*parts.epoch) - 1) * digits.whole(*parts.steps)
        return Values(step, self._losses(digits), self._places)

    def _losses(self, digits: Digits) -> NDArray[np.float64]:
        if self.parts.loss is None or self._places < 0:
            return np.full(len(digits), float(self._loss) if self._loss else np.nan)
        begin, end = self.parts.loss
        negative = self._loss.startswith("-")
        point = end - self._places - 1 if self._places else end
        number = digits.whole(begin + negative, point)
        if self._places:
            number *= 10**self._places
            number += digits.whole(point + 1, end)
        loss = number.astype(np.float64)
        loss /= -(10.0**self._places) if negative else 10.0**self._places
        return loss


def make_template(line: bytes, text: str, parts: TrainingLine) -> Template | None:
    """Return the template of a line with ``parts`` (in characters of ``text``) found slowly. None if it cannot be one.

    Bytes that are not UTF-8 have no place of their own in the text. Numbers with exponents or very many digits are
    left to the slow way.
    """
    head = text[: parts.end]
    if "\ufffd" in head:
        return None
    loss = "" if parts.loss is None else text[slice(*parts.loss)]
    if parts.loss is not None and (sum(map(str.isdigit, loss)) > _MOST_DIGITS or "e" in loss.lower()):
        return None

    def moved(spot: Spot | None) -> Spot | None:
        return None if spot is None else (len(text[: spot[0]].encode()), len(text[: spot[1]].encode()))

    end = len(head.encode())
    if end > WIDEST:
        return None
    time = None if parts.time is None else len(text[: parts.time].encode())
    moved_parts = TrainingLine(end, time, *(moved(spot) for spot in (parts.step, parts.epoch, parts.steps, parts.loss)))
    # Behind the end none of these stands, unless another record does.
    return Template(line[:end], moved_parts, loss) if opening_in(line) == opening_in(line[:end]) else None


def opening_in(line: bytes) -> int:
    """Return how many bytes of a line are in ``OPENING``."""
    return sum(line.count(mark) for mark in OPENING)


def shape_of(head: bytes) -> bytes:
    """Return a key that is the same for all lines of one template."""
    return head.translate(_SHAPES)


_SHAPES = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))


def moments(digits: Digits, at: int) -> tuple[Indices, Indices, Indices]:
    """Return the date (``20261121``), seconds of the day (-1: no such time) and milliseconds of matched lines."""
    date = digits.whole(at, at + 4) * 10_000 + digits.whole(at + 5, at + 7) * 100
    date += digits.whole(at + 8, at + 10)
    hour, minute, second = (digits.whole(at + 11 + 3 * part, at + 13 + 3 * part) for part in range(3))
    seconds = np.where((hour > 23) | (minute > 59) | (second > 59), -1, hour * 3600 + minute * 60 + second)
    return date, seconds, digits.whole(at + 20, at + 23)
