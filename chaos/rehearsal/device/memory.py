"""A rank's device memory in a rehearsal: the loss by an error, and the device's later report of it.

A memory error of a fault destroys the content of the memory for real: weights and optimizer state become NaN, so that
only a copy from a replica can make the training equal to the fault-free one again.
"""

from __future__ import annotations

import re
from time import monotonic_ns
from typing import Any, Callable

from chaos.agent.barriers import Barriers
from chaos.agent.digests import array_of

HIGH_LEVEL, LOW_LEVEL, UNKNOWN = "RS_UCE_HIGHLEVEL", "RS_UCE_LOWLEVEL", "RS_NORMAL"
"""The device's judgement of an error (``_get_uce_process_strategy``): memory in use was lost, none was, or the device
knows of no memory that it could give back; then MindSpore's handler ``clean`` answers that it has failed."""

_CLEANING = "handler.clean"

_MEMORY_ERROR = "UCEError"
_TIME = re.compile(r"time us=(\d+)")
"""The time of a multi-bit ECC error in its text, in microseconds."""


class Memory:
    """The memory of one rank's device. All times are in microseconds of the host's monotonic clock.

    ``write`` puts an array's values into a parameter.
    """

    def __init__(self, barriers: Barriers, write: Callable[[Any, Any], None]) -> None:
        self._barriers = barriers
        self._write = write
        self._strategy = HIGH_LEVEL
        self._broken = False
        self._error_time = 0
        self._update_began = 0
        self._update_ended = 0
        barriers.on_raise = self.suffer

    def update_begins(self) -> None:
        """Note that the optimizer begins to write."""
        self._update_began = monotonic_ns() // 1000

    def update_ends(self) -> None:
        """Note that the optimizer has written all of the step."""
        self._update_ended = monotonic_ns() // 1000
        self._broken = False

    def timestamps(self) -> list[int]:
        """Return when the error happened, when the optimizer update began and when it ended.

        Each is 0 where it never happened.
        """
        return [self._error_time, self._update_began, self._update_ended]

    def strategy(self) -> str:
        """Return what has become of the memory."""
        return self._strategy

    def suffer(self, order: dict[str, Any]) -> dict[str, Any]:
        """Take the error that is about to be raised. ``order``: its ``text``, its ``strategy`` unless high level.

        Returns the number of lost ``parameters`` of the network, for the record. While the device is cleaned after an
        error of its memory (``phase``), MindSpore queries it, and another error is in the answer.
        """
        text = str(order["text"])
        if _MEMORY_ERROR not in text:
            return {}
        if order.get("phase") == _CLEANING and self._broken:
            self._strategy = UNKNOWN
            return {"parameters": self._lose(), "answered": True}
        self._strategy, self._broken = str(order.get("strategy", HIGH_LEVEL)), True
        match = _TIME.search(text)
        if match is not None:
            self._error_time = int(match[1])
            if self._update_began > self._update_ended:
                # Raised at the barrier with which the update begins: the update's first access has failed.
                self._update_began = self._error_time
        return {"parameters": self._lose() if self._strategy == HIGH_LEVEL else 0}

    def _lose(self) -> int:
        import numpy

        lost = 0
        for _, parameter in self._barriers.parameters:
            values = array_of(parameter)
            if numpy.issubdtype(values.dtype, numpy.floating):
                self._write(parameter, numpy.full_like(values, numpy.nan))
                lost += 1
        return lost
