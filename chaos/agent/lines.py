"""The calls of ``chaos_steps``, the file with which a training loop of any framework reports its steps.

The file may lie anywhere, in a package too. It is found by its name when the job imports it, and its calls come here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import index
from types import ModuleType
from typing import Any, Callable

from chaos.agent.step_source import StepSource
from chaos.agent.training import Training

MODULE = "chaos_steps"
"""The name of the file, without its ending."""

_PHASES = ("forward", "allreduce.enter", "optimizer.update")


class Lines:
    """The lines of one process's loop."""

    def __init__(self, training: Training, source: StepSource) -> None:
        self._training = training
        self._source = source
        self._parts: tuple[Any, ...] = ()
        self._last: int | None = None
        self._batch: Any = None
        self._lines: dict[str, Callable[..., Any]] = {
            "state_is": self._state_is,
            "step_begins": self._step_begins,
            "step_ends": self._step_ends,
            "reached": self._reached,
            "saved": self._saved,
            "saving": self._saving,
            "loaded": self._loaded,
        }

    def connect(self, module: ModuleType) -> None:
        """Take the calls of the imported file from now on."""
        self._source.lines = True
        module._agent = self.take  # type: ignore[attr-defined]

    def take(self, name: str, **arguments: Any) -> Any:
        """Take the call of a function of the file."""
        line = self._lines.get(name)
        if line is None:  # of a file that is newer than this agent
            self._source.unclear(f"the job's {MODULE}.py has {name}(), which this version of chaos does not know")
            return nullcontext()
        return line(**arguments)

    def _state_is(self, parts: tuple[Any, ...]) -> None:
        self._parts = parts

    def _step_begins(self, step: Any, batch: Any) -> None:
        if not self._counts():
            return
        number = _number(step)
        if number is None or number < 1:
            self._source.unclear(f"step_begins({step!r}): steps are numbers from 1, counted over the whole job")
        elif self._training.in_step:
            self._source.unclear(f"step_begins({number}) came before step_ends() of step {self._last}")
        else:
            if self._last is None or number != self._last + 1:
                self._training.begin(number - 1, self._state)
            self._last, self._batch = number, batch
            self._training.step_begin(number)

    def _step_ends(self, loss: Any) -> None:
        if not self._counts():
            return
        if not self._training.in_step:
            self._source.unclear("step_ends() came without step_begins() before it")
            return
        self._training.step_end(loss, self._batch)

    def _reached(self, phase: str) -> None:
        if not self._counts():
            return
        if phase in _PHASES:
            self._training.reach(phase)
        else:
            self._source.unclear(f"reached({phase!r}): the points between two lines are {', '.join(_PHASES)}")

    def _saved(self, path: Any, step: Any) -> None:
        if not self._training.has_saved(os.fspath(path)):
            with self._saving(path, step):
                pass

    def _saving(self, path: Any, step: Any) -> AbstractContextManager[None]:
        return self._training.saving(os.fspath(path), end_of_life=False, step=_number(step))

    def _loaded(self, path: Any, step: Any) -> None:
        self._training.loaded(os.fspath(path), _number(step))

    def _state(self) -> list[tuple[str, Any]]:
        try:
            return list(state_of(self._parts))
        except (TypeError, ValueError) as error:
            self._source.unclear(f"state_is(): a part has no names and arrays: {error}")
            return []

    def _counts(self) -> bool:
        """Return whether the lines count. Within ``Model.train`` a line in a callback would count a step twice."""
        return not (self._source.is_unclear or self._source.in_model_train)


def state_of(parts: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the named arrays and numbers of all parts; an array that several parts hold under one name comes once.

    Different arrays of one name are told apart by the number of their part, from 0.
    """
    known: dict[str, Any] = {}
    for number, part in enumerate(parts):
        for name, value in _named(part):
            if name in known and known[name] is not value:
                name = f"{number}.{name}"
            if name not in known:
                known[name] = value
                yield name, value


def _named(part: Any) -> Iterator[tuple[str, Any]]:
    # A network can be called, so it is looked at before functions are. MindSpore's have both methods; only those of
    # parameters_dict are the names in a checkpoint.
    for reader in ("parameters_dict", "state_dict"):
        if hasattr(part, reader):
            part = getattr(part, reader)()
            break
    else:
        part = part() if callable(part) else part
    if not isinstance(part, Mapping):
        pairs = list(part)
        part = {name: value for name, value in pairs if isinstance(name, str)}
    yield from _flat("", part)


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        items: list[tuple[Any, Any]] = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        if value is not None:
            yield name, value
        return
    for key, item in items:
        yield from _flat(f"{name}.{key}" if name else str(key), item)


def _number(value: Any) -> int | None:
    try:
        return index(value)
    except TypeError:
        return None
