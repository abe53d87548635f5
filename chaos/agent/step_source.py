"""The source of a process's steps: ``Model.train``, the job's own lines, or the hooks that find a loop by themselves.

Only one of them counts, so that no step is counted twice. If the steps cannot be counted, the reason is recorded once,
and nothing is counted from then on: a run is better *unknown* than judged by wrong steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from chaos.agent.record import Record
from chaos.agent.training import Training


class StepSource:
    """Which source counts the steps of this process, and whether any does.

    ``lines`` says that the job has imported ``chaos_steps``: its lines count, and the hooks do not look for a loop.
    ``gradients`` says that the job computes gradients, and has no optimizer that the hooks know. ``none`` and ``open``
    are the hooks' reasons, if they have any, why a process that trains has no step, and why its only step has no end.
    """

    def __init__(self, record: Record, training: Training) -> None:
        self.lines = False
        self.gradients = False
        self.none = ""
        self.open = ""
        self.is_unclear = False
        self._record = record
        self._training = training
        self._unreachable: set[str] = set()
        self._models = 0
        self._in_model = 0

    @contextmanager
    def model_train(self) -> Iterator[None]:
        """Wrap a call of ``Model.train``, whose callback counts the steps: also those of a loop before it."""
        if self._training.steps_begun and not self._models:
            self.unclear("the script trains in a loop of its own, and by Model.train")
        self._models += 1
        self._in_model += 1
        try:
            yield
        finally:
            self._in_model -= 1

    @property
    def in_model_train(self) -> bool:
        """Whether ``Model.train`` runs at present."""
        return self._in_model > 0

    @property
    def after_model_train(self) -> bool:
        """Whether a call of ``Model.train`` has ended."""
        return self._models > self._in_model

    def unclear(self, reason: str) -> None:
        """Record why the steps cannot be counted, and count none from now on."""
        if not self.is_unclear:
            self.is_unclear = True
            self._record.write("steps.unclear", reason=reason)

    def unreachable(self, phase: str, reason: str) -> None:
        """Record, once, why no step of this process comes to a phase at which a fault is to be made."""
        if phase not in self._unreachable:
            self._unreachable.add(phase)
            self._record.write("phase.unreachable", phase=phase, reason=reason)

    def finish(self) -> None:
        """Record, when the process ends by itself, that it has trained no step; else the end of a loop of its own."""
        if self.is_unclear or hasattr(sys, "last_type"):  # the process ends by an exception
            return
        begun, in_step = self._training.steps_begun, self._training.in_step
        if (begun == 0 and self.none) or (begun == 1 and in_step and self.open):
            self.unclear(self.open if begun else self.none)
        elif begun == 0:
            self._record.write("steps.none", model_train=self._models > 0, lines=self.lines, gradients=self.gradients)
        elif not self._models and not in_step:
            self._training.end()
