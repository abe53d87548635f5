"""The global norm of a step's gradients, watched in the manner of MindFormers' ``TrainingStateMonitor``.

A norm at or over the threshold ends the step with a ``TREError``, which MindSpore's wrapper around the training answers
with a rollback to the newest periodic checkpoint. Log lines and the record file are those that MindFormers documents.
"""

from __future__ import annotations

import glob
import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank
from mindspore.communication.comm_func import barrier
from mindspore.train import Callback, RunContext

RECORD = "abnormal_global_norm.json"
EXCLUSIVE = (
    "The check_for_global_norm and use_skip_data_by_global_norm cannot be turned on at the same time, "
    "please choose one."
)
"""MindFormers' error where data of abnormal steps is to be skipped as well."""


def _logger() -> logging.Logger:
    logger = logging.getLogger("global_norm")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(
            logging.Formatter("%(asctime)s - %(name)s[%(filename)s:%(lineno)d] - %(levelname)s - %(message)s")
        )
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    return logger


def with_global_norm(optimizer: type[nn.Optimizer]) -> type[nn.Optimizer]:
    """Return a class of optimizer that leaves the norm of the gradients it was given in ``global_norm``."""

    class WithGlobalNorm(optimizer):  # type: ignore[misc]
        """The optimizer, which measures before it updates."""

        def construct(self, gradients: tuple[Tensor, ...], **more: Any) -> Any:
            squares = [ops.square(gradient.astype(ms.float32)).sum() for gradient in gradients]
            total = squares[0]
            for square in squares[1:]:
                total = total + square
            self.global_norm = ops.sqrt(total)
            return super().construct(gradients, **more)

    return WithGlobalNorm


class GlobalNormMonitor(Callback):  # type: ignore[misc]
    """Throws a TREError for a step whose global norm reaches ``threshold``, once for each step.

    Rank 0 keeps ``abnormal_global_norm.json`` in ``output``: step → norms. A step that is in it, from this run or from
    an earlier one, is only recorded again and training goes on. It runs before the callback that saves checkpoints, so
    that the state of such a step is not saved before it is known to be abnormal.
    """

    def __init__(self, output: str, threshold: float, optimizer: nn.Optimizer, *, skip_data: bool = False) -> None:
        super().__init__()
        if skip_data:
            raise ValueError(EXCLUSIVE)
        self._path = os.path.join(output, RECORD)
        self._threshold = threshold
        self._optimizer = optimizer
        self._norms: dict[str, list[float]] = {}
        if os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                self._norms = json.load(file)

    def on_train_step_end(self, run_context: RunContext) -> None:
        del run_context
        norm = float(self._optimizer.global_norm.asnumpy())
        if norm < self._threshold:
            return
        step = str(int(self._optimizer.global_step.asnumpy().reshape(-1)[0]))
        again = step in self._norms
        self._norms.setdefault(step, []).append(norm)
        if get_rank() == 0:
            self._write()
        logger = _logger()
        if again:
            logger.info(
                "The global norm %s of step %s is still greater or equal than threshold %s, continue training.",
                [norm],
                step,
                self._threshold,
            )
            return
        logger.info(
            "Current global norm %s is greater equal than threshold %s, stop training...", [norm], self._threshold
        )
        barrier()
        logger.info("Call barrier before throw TREError.")
        ms.runtime.synchronize()
        logger.info("All stream execution completed.")
        raise RuntimeError("TREError occurred......")

    def _write(self) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        unfinished = f"{self._path}.tmp"
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(self._norms, file)
        os.replace(unfinished, self._path)


def newest_checkpoint(directory: str) -> Callable[[], tuple[dict[str, Any], bool]]:
    """Return the rollback of ``TrainFaultTolerance``: it loads the newest periodic checkpoint of this rank.

    Names count from the last rollback, so the newest file is the one that was written last. A save that goes on in the
    background is waited for. The second value says that no redundancy was removed from the file.
    """

    def load() -> tuple[dict[str, Any], bool]:
        for thread in threading.enumerate():
            if thread.name == "asyn_save_ckpt":
                thread.join()
        files = glob.glob(os.path.join(directory, "*.ckpt"))
        if not files:
            raise FileNotFoundError(f"no periodic checkpoint in {directory} to roll back to")
        return ms.load_checkpoint(max(files, key=lambda file: os.stat(file).st_mtime_ns)), False

    return load
