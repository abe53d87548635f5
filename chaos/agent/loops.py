"""A training loop without ``Model.train``, found by its calls: a gradient is computed, then an optimizer updates.

One gradient and one update make a step. Any other order could be counted in several ways: an accumulation of gradients,
two optimizers, a skipped update. Such a loop is not counted at all; its steps are ``unclear`` with the reason, and the
job has to report them by its own lines.

No framework is imported here. :mod:`chaos.agent.loop_hooks` calls these methods at MindSpore's functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Callable, Protocol

from chaos.agent.step_source import StepSource
from chaos.agent.training import Training

UPDATE = "optimizer.update"
_MOST_NAMES = 3

_LOOKED_AT = (1, 2)
"""Steps of a process after which the weights are looked at once more: a loop does the same in each of its steps."""


class Optimizers(Protocol):
    """The framework's optimizers of this process."""

    def alive(self) -> list[Any]:
        """Return the optimizers that no other one contains."""

    def updates(self, optimizer: Any) -> int | None:
        """Return the number of its updates, which a checkpoint restores; None where it does not count them."""

    def state(self, optimizer: Any) -> list[tuple[str, Any]]:
        """Return its state and the weights that it updates, with all that belongs to their networks, by name."""


class Loop:
    """The steps of one process's loop.

    ``resumed`` says that the job was started again, so its steps may go on from a checkpoint. ``armed`` returns the
    phases at which a fault is armed for this rank. ``in_model`` says that an update within ``Model.train`` is a point,
    too, because no device layer comes to it. A point within another one is a part of it: an optimizer may call
    compiled functions of its own.
    """

    def __init__(
        self,
        training: Training,
        source: StepSource,
        optimizers: Optimizers,
        *,
        resumed: bool,
        armed: Callable[[], set[str]] = set,
        in_model: bool = False,
    ) -> None:
        self._training = training
        self._source = source
        self._optimizers = optimizers
        self._resumed = resumed
        self._armed = armed
        self._in_model = in_model
        self._optimizer: Any = None
        self._updates: int | None = None
        self._step = 0
        self._inside = False
        self._has_gradient = False
        self._batch: Any = None
        self._loss: Any = None
        self._compiled: _Compiled | None = None
        self._updating: dict[str, list[Any]] = {}

    def gradient(self, inputs: Any, compute: Callable[[], Any]) -> Any:
        """Compute a loss with its gradient, from these inputs; the first of the results is the loss."""
        if not self._counts():
            return compute()
        with self._point():
            self._gradient_begins(inputs)
            results = compute()
            self._gradient_ends(results)
        return results

    def update(self, optimizer: Any, compute: Callable[[], Any]) -> Any:
        """Let an optimizer update its weights."""
        if self._in_model and self._source.in_model_train and not self._inside:
            self._training.reach(UPDATE)
        if not self._counts():
            return compute()
        with self._point():
            if self._optimizer is not None and self._optimizer is not optimizer:
                self._source.unclear(_several(self._optimizer, optimizer))
            elif not self._has_gradient:
                self._source.unclear(f"{_name(optimizer)} updates the weights, and chaos has seen no gradient before")
            else:
                self._training.reach(UPDATE)
            results = compute()
            if self._has_gradient and not self._source.is_unclear:
                self._end()
        return results

    def compiled(
        self, inputs: Any, run: Callable[[], Any], loss: Callable[[Any], Any] = lambda results: results
    ) -> Any:
        """Run a compiled function; ``loss`` returns the results that begin with the loss.

        :meth:`compiled_with` is called meanwhile, after its compilation and before its execution.
        """
        if not self._counts():
            return run()
        with self._point():
            self._compiled = compiled = _Compiled(inputs)
            try:
                results = run()
            finally:
                self._compiled = None
            if self._source.is_unclear:
                return results
            with_loss = results if loss is None else loss(results)
            if compiled.is_gradient:
                self._gradient_ends(with_loss)
            else:
                self._compiled_ends(compiled, with_loss)
        return results

    @property
    def awaits_names(self) -> bool:
        """Whether :meth:`compiled_with` would tell anything: a compiled function is a point of the loop at present."""
        return self._compiled is not None

    def compiled_with(self, key: str, names: Iterable[str], *, gradient: bool) -> None:
        """Take in the names of the parameters that the function of this key uses, and whether it computes a gradient.

        If the optimizer's own state is among them the function is a whole step, and no point within it can be reached.
        """
        compiled, self._compiled = self._compiled, None
        if compiled is None:
            return
        if key not in self._updating:
            used = set(names)
            self._updating[key] = [optimizer for optimizer in self._optimizers.alive() if used & _own(optimizer)]
        updating = self._updating[key]
        if updating and self._training.in_step:
            self._source.unclear(f"a compiled function updates the weights in step {self._step}, after its gradient")
        elif len(updating) > 1:
            self._source.unclear(_several(*updating[:2]))
        elif updating and self._can_begin():
            compiled.is_step = True
            self._begin(compiled.inputs)
            if UPDATE in self._armed():
                self._source.unreachable(UPDATE, "the whole step is one compiled function")
        elif gradient and not updating:
            compiled.is_gradient = True
            self._gradient_begins(compiled.inputs)

    def _counts(self) -> bool:
        """Return whether this is a point of the loop, and nothing else counts the steps."""
        source = self._source
        return not (self._inside or source.is_unclear or source.lines or source.in_model_train)

    @contextmanager
    def _point(self) -> Iterator[None]:
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    def _gradient_begins(self, inputs: Any) -> None:
        if self._training.in_step:
            self._source.unclear(
                f"a second gradient was computed in step {self._step} before the weights were updated (accumulated "
                "gradients, or a step without an update)"
            )
        elif self._can_begin():
            self._begin(inputs)

    def _gradient_ends(self, results: Any) -> None:
        if self._training.in_step and not self._source.is_unclear:
            self._has_gradient, self._loss = True, first_leaf(results)

    def _compiled_ends(self, compiled: _Compiled, results: Any) -> None:
        if self._optimizer is None:
            return
        updates = self._optimizers.updates(self._optimizer)
        moved = None if updates is None or self._updates is None else updates - self._updates
        if compiled.is_step and moved in (None, 1):
            self._loss = first_leaf(results)
            self._end()
        elif compiled.is_step or moved:
            self._source.unclear(f"one call of a compiled function has made {moved} updates of the weights")

    def _can_begin(self) -> bool:
        """Return whether a step can begin, and see to the first one."""
        if self._optimizer is not None:
            return True
        alive = self._optimizers.alive()
        if not alive:
            self._source.gradients = True
            return False
        if len(alive) > 1:
            self._source.unclear(_several(*alive[:2]))
            return False
        done = self._steps_done(alive[0])
        if done is None:
            return False
        self._optimizer, self._step = alive[0], done
        self._training.begin(done, self._optimizers.state(alive[0]))
        return True

    def _steps_done(self, optimizer: Any) -> int | None:
        """Return the number of steps before this process's first one; None where nothing says it."""
        training = self._training
        if self._source.after_model_train:
            self._source.unclear("the script trains by Model.train, and in a loop of its own")
        elif training.steps_per_update > 1:
            self._source.unclear(f"job.steps_per_update is {training.steps_per_update}: an update takes several steps")
        else:
            updates = self._optimizers.updates(optimizer)
            if updates or not self._resumed:
                return updates or 0
            if training.loaded_step is not None:
                return training.loaded_step
            if not training.has_loaded:
                return 0
            if (saved := training.saved_step()) is not None:
                return saved
            self._source.unclear(
                f"a checkpoint was loaded that has no step_num, and {_name(optimizer)} has counted no update: the "
                "number of the first step is not known"
            )
        return None

    def _begin(self, inputs: Any) -> None:
        if self._training.steps_begun in _LOOKED_AT and (changed := self._training.changed_since_step()):
            self._source.unclear(
                f"{some(changed)} changed after the update of step {self._step}, so the step ends later than "
                f"{_name(self._optimizer)}"
            )
            return
        self._step += 1
        self._has_gradient, self._loss, self._batch = False, None, inputs
        self._updates = self._optimizers.updates(self._optimizer)
        self._training.step_begin(self._step)
        self._training.reach("forward")

    def _end(self) -> None:
        loss, batch = self._loss, self._batch
        self._has_gradient, self._loss, self._batch = False, None, None
        self._updates = self._optimizers.updates(self._optimizer)
        self._training.step_end(loss, batch)


class _Compiled:
    """A call of a compiled function."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs
        self.is_step = False
        self.is_gradient = False


def _own(optimizer: Any) -> set[str]:
    """Return names of the optimizer's own state: an evaluation uses the weights, and none of these."""
    weights = {id(weight) for weight in optimizer.parameters}
    return {parameter.name for parameter in optimizer.get_parameters() if id(parameter) not in weights}


def first_leaf(outputs: Any) -> Any:
    """Return the first of the outputs, however deep; None without any."""
    while isinstance(outputs, (tuple, list)):
        if not outputs:
            return None
        outputs = outputs[0]
    return outputs


def _name(optimizer: Any) -> str:
    return f"the optimizer {type(optimizer).__name__}"


def some(names: list[str]) -> str:
    """Return some names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _several(first: Any, second: Any) -> str:
    return (
        f"there are two optimizers, {type(first).__name__} and {type(second).__name__}: a step may update with either"
    )
