"""The updates of optimizers that run at present. Where an update raises an error, PyTorch calls no hook at its end."""

from __future__ import annotations

import sys
from threading import get_ident
from types import FrameType


class Updates:
    """The updates that run, the outermost first: the thread and the frame of each, or None where its end is seen."""

    def __init__(self) -> None:
        self._running: list[tuple[int, FrameType | None]] = []
        self._failed = False

    def begin(self, frame: FrameType | None) -> bool:
        """Begin an update in this frame, and return whether it is a part of no other."""
        outermost = not self.run()
        self._running.append((get_ident(), frame))
        return outermost

    def end(self) -> bool:
        """End the innermost update, and return whether it was a part of no other."""
        self.run()
        self._running.pop()
        return not self._running

    def run(self) -> bool:
        """Return whether an update runs."""
        if not self._running:
            return False
        thread, stack = get_ident(), _stack()
        for place, (began, frame) in enumerate(self._running):
            if began == thread and frame is not None and frame not in stack:
                del self._running[place:]
                self._failed = True
                break
        return bool(self._running)

    def take_failure(self) -> bool:
        """Return whether an update has raised an error since the last question."""
        self.run()
        failed, self._failed = self._failed, False
        return failed


def _stack() -> list[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    stack: list[FrameType] = []
    while frame is not None:
        stack.append(frame)
        frame = frame.f_back
    return stack
