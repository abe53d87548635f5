"""Names the awaited goal once nothing moves any more: a run that is silent for minutes looks like a hung one."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from chaos.base.clock import Clock

FIRST_SECONDS = 10.0
"""Stillness after which the goal is named the first time; the next time after twice as long, and so on."""


class Stalled:
    """A wait of a launch, with its messages to the watcher."""

    def __init__(self, name: str, seconds: float, clock: Clock, detail: Callable[[], str]) -> None:
        """Take the deadline's ``name`` and ``seconds``; ``detail`` names the missing part."""
        self._name = name
        self._seconds = seconds
        self._clock = clock
        self._detail = detail
        self._began = self._since = clock.mono()
        self._next = FIRST_SECONDS
        self._state: Hashable = None

    def look(self, state: Hashable) -> str | None:
        """Return a sentence where it is time for one. ``state`` changes whenever something has moved."""
        now = self._clock.mono()
        if state != self._state:
            self._state, self._since, self._next = state, now, FIRST_SECONDS
            return None
        still = (now - self._since) / 1e9
        if still < self._next:
            return None
        self._next *= 2
        left = max(0.0, self._seconds - (now - self._began) / 1e9)
        return f"nothing has moved for {still:.0f} s; deadline {self._name} runs out in {left:.0f} s: {self._detail()}"
