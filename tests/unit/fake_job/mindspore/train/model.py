"""A training loop with the callbacks, the arguments and the step counters of MindSpore's ``Model.train``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from mindspore.tensor import Tensor


class Rollback(RuntimeError):
    """Training goes back to the end of ``step``: the wrapper around ``train`` calls it again, as after a repair."""

    def __init__(self, step: int) -> None:
        super().__init__(f"back to step {step}")
        self.step = step


class Callback:
    """Base of callbacks."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Before the first step."""

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Before each step."""

    def on_train_step_end(self, run_context: RunContext) -> None:
        """After the update of each step."""

    def on_train_end(self, run_context: RunContext) -> None:
        """After the last step."""


class Arguments(dict[str, Any]):
    """A dict with attribute access, like MindSpore's."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """Hands the arguments to callbacks."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments

    def original_args(self) -> Arguments:
        return self._arguments


class Network:
    """Two parameters, and hooks before the forward pass."""

    def __init__(self) -> None:
        self.weights = [Tensor([1.0, 2.0], "weight"), Tensor([0.5], "bias")]
        self.hooks: list[Callable[[Any, Any], Any]] = []

    def get_parameters(self) -> Iterable[Tensor]:
        return iter(self.weights)

    def register_forward_pre_hook(self, hook: Callable[[Any, Any], Any]) -> None:
        self.hooks.append(hook)

    def __call__(self, batch: list[Tensor]) -> Tensor:
        for hook in self.hooks:
            assert hook(self, batch) is batch
        return Tensor([sum(self.weights[0].values)])


class Optimizer:
    """Counts the updates that it has done; a checkpoint restores that."""

    def __init__(self, done: int = 0) -> None:
        self.global_step = Tensor([float(done)])


def _handle(train: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(train)
    def wrapper(self: Model, *args: Any, **kwargs: Any) -> None:
        self.called_with = (args, kwargs)
        while True:
            try:
                return train(self, *args, **kwargs)
            except Rollback as rollback:
                self.initial_step = rollback.step
                if self.optimizer is not None:
                    self.optimizer.global_step.values[0] = float(rollback.step)
                kwargs["initial_epoch"] = 0

    return wrapper


class Model:
    """Trains. ``in_step`` is called with the step after its update. ``done`` steps were trained by another process."""

    def __init__(self, done: int = 0, in_step: Callable[[int], None] = lambda step: None) -> None:
        self.network = Network()
        self.optimizer: Optimizer | None = Optimizer(done)
        self.initial_step = 0
        self.called_with: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})
        self._in_step = in_step

    @_handle
    def train(
        self,
        epoch: int,
        train_dataset: list[list[Tensor]],
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        del dataset_sink_mode, sink_size, initial_epoch
        self._train(epoch, train_dataset, callbacks)

    def fit(
        self,
        epoch: int,
        train_dataset: list[list[Tensor]],
        valid_dataset: Any = None,
        valid_frequency: int = 1,
        callbacks: Any = None,
    ) -> None:
        """Train as ``train``, and without calling it."""
        del valid_dataset, valid_frequency
        self._train(epoch, train_dataset, callbacks)

    def _train(self, epoch: int, train_dataset: list[list[Tensor]], callbacks: Any) -> None:
        callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        arguments = Arguments(
            cur_step_num=self.initial_step,
            optimizer=self.optimizer,
            network=self.network,
            train_network=self.network,
        )
        context = RunContext(arguments)
        for callback in callbacks:
            callback.on_train_begin(context)
        while arguments.cur_step_num < epoch * len(train_dataset):
            arguments.cur_step_num += 1
            arguments.train_dataset_element = train_dataset[(arguments.cur_step_num - 1) % len(train_dataset)]
            for callback in callbacks:
                callback.on_train_step_begin(context)
            arguments.net_outputs = self.network(arguments.train_dataset_element)
            self.network.weights[0].values[0] += 1.0
            if self.optimizer is not None:
                self.optimizer.global_step.values[0] += 1
            for callback in callbacks:
                callback.on_train_step_end(context)
            self._in_step(arguments.cur_step_num)
        for callback in callbacks:
            callback.on_train_end(context)
