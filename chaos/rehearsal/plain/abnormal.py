"""The watch over the global norm (TRE): log lines, record and order are those of MindFormers' ``TrainingStateMonitor``.

A norm at or over the threshold ends the step with a ``TREError``, once for each step; the answer is a rollback.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy

from chaos.rehearsal.plain.device import PlainDevice

RECORD = "abnormal_global_norm.json"
ERROR = "TREError occurred......"


class NormWatch:
    """Watches the norm of the reduced gradients of every step.

    Rank 0 keeps the record in ``output``: step to norms. A step that is in it, from this run or an earlier one, is only
    recorded again and training goes on.
    """

    def __init__(self, output: str, threshold: float, device: PlainDevice) -> None:
        self._path = os.path.join(output, RECORD)
        self._threshold = threshold
        self._device = device
        self._norms: dict[str, list[float]] = {}
        if os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                self._norms = json.load(file)

    def judge(self, step: int, gradients: Any) -> None:
        """Check the flat gradients of a step that has ended. Raises RuntimeError where training must go back."""
        norm = float(numpy.sqrt((gradients.astype("float64") ** 2).sum()))
        if norm < self._threshold:
            return
        again = str(step) in self._norms
        self._norms.setdefault(str(step), []).append(norm)
        if self._device.rank == 0:
            self._write()
        if again:
            over = f"is still greater or equal than threshold {self._threshold}, continue training."
            print(f"The global norm {[norm]} of step {step} {over}", flush=True)
            return
        over = f"is greater equal than threshold {self._threshold}, stop training..."
        print(f"Current global norm {[norm]} {over}", flush=True)
        self._device.reduce(numpy.zeros(1, numpy.int32))  # a barrier: no rank goes back before all know
        raise RuntimeError(ERROR)

    def _write(self) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        unfinished = f"{self._path}.tmp"
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(self._norms, file)
        os.replace(unfinished, self._path)
