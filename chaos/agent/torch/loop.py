"""The steps of a loop in PyTorch: a step begins with the first forward run of a model, and ends with the update.

Any number of forward and backward runs may lie between two updates, so an accumulation of gradients is one step. No
framework is imported here: :mod:`chaos.agent.torch.hooks` calls these methods.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Protocol

from chaos.agent.digests import parameter_digests
from chaos.agent.loops import some
from chaos.agent.step_source import StepSource
from chaos.agent.torch.closures import Closures
from chaos.agent.torch.first_step import Earlier, steps_before
from chaos.agent.torch.networks import Networks
from chaos.agent.torch.optimizers import (
    Optimizers,
    frozen_in,
    hyperparameters_of,
    keeps_own_part,
    not_comparable,
    state_of,
)
from chaos.agent.torch.updates import Updates
from chaos.agent.training import Training

REDUCED = "allreduce.enter"
"""The phase of the barrier where the first backward run of a step begins.

DDP and FSDP2 reduce within a backward run. With ``no_sync`` a later run does it, so only the first is surely before.
"""

_LOOKED_AT = (1, 2)
"""Steps of a process after which the weights are looked at once more: a loop does the same in each of its steps."""

_NO_FORWARD = (
    "gradients were computed, and no forward run of a model with weights was seen: a function that torch.compile has "
    "compiled may call it. Compile the model in its place"
)
_NO_UPDATE = (
    "gradients were computed, and no update of an optimizer was seen: a function that torch.compile has compiled may "
    "call it. Compile optimizer.step in its place"
)


class Numbering(Protocol):
    """Whoever else numbers the steps of this process: its replica group."""

    @property
    def steps_done(self) -> int:
        """The number of steps before the next one."""

    def awaits_state(self) -> bool:
        """Return whether the state of this process is still to come."""


class Altering(Protocol):
    """The part that changes values where a fault says so."""

    def backward(self, loss: Any, gradient: Any) -> Any:
        """Return the gradient with which a backward run of a step begins, in place of ``gradient``."""

    def update_begins(self) -> None:
        """See that the step has no more backward runs."""


class TorchLoop:
    """The steps of one process's loop. ``group`` is its replica group, None where the optimizer counts the steps.

    Of several optimizers ``ends_with`` is the number of that whose update ends a step, in the order in which they are
    made; None where the script has only one. ``earlier`` is None where the rank had no process before. ``alterations``
    is None where no fault can change a value. ``model`` is the model whose forward run begins a step, once training has
    begun. ``closures`` knows the closure of the update that runs.
    """

    def __init__(
        self,
        training: Training,
        source: StepSource,
        optimizers: Optimizers,
        *,
        ends_with: int | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        self._training = training
        self._source = source
        self._optimizers = optimizers
        self._ends_with = ends_with
        self._earlier = earlier
        self._networks = Networks()
        self._optimizer: Any = None
        self.model: Any = None
        self._step = 0
        self._updates = Updates()
        self.closures = Closures()
        self._empty = False
        self._backward_begun = False
        self._fetched: Any = None
        self._fresh = True
        self._passed_over = False
        self._evaluated = False
        self._losses: list[Any] = []
        self._losses_before = 0
        self._batches: list[Any] = []
        self._backward_failed = False
        self._scaled: tuple[Any, Any] | None = None
        self.group: Numbering | None = None
        self.alterations: Altering | None = None
        self._joining: Any = None

    def awaits(self, model: Any) -> bool:
        """Return whether a forward run of this model would tell anything at present."""
        if self._updates_alone():
            return False
        return model is self.model if self._training.in_step else self._counts()

    def forward(self, model: Any, inputs: Any) -> None:
        """See a forward run that records gradients: outside of a step, one begins with it if the model has weights.

        Where a loader hands out the batches, one with an old batch may belong to no step: a script may compute an
        accuracy behind the update. A step begins with its backward run then, if there is one.

        Its batch is the last one that a loader has handed out: a script may skip batches that it has trained before.
        Where that was evaluated, the inputs of the model count: a script may load the data of its evaluation alone.
        """
        training = self._training
        if not (training.in_step or self._fresh or self._evaluated or self._fetched is None):
            self._passed_over = True
            return
        if not training.in_step and any(weight.requires_grad for weight in model.parameters()):
            if self._joins(model):
                return
            self._begin(model)
        if training.in_step:
            self._drop_failed()
            self._trains(inputs)

    def _trains(self, inputs: Any) -> None:
        own = self._fetched is None or (self._evaluated and inputs)
        self._batches.append(inputs if own else self._fetched)
        self._training.reach("forward")

    def _drop_failed(self) -> None:
        """Forget what the step has tried in vain: a loop that catches an error tries it again, or leaves it out."""
        if self._updates.take_failure():
            self._losses, self._batches = [], []
        elif self._backward_failed:
            del self._batches[-1:]
        self._backward_failed = False

    def begun_with(self, model: Any) -> bool:
        """Return whether a step runs that has begun with this model."""
        return self._training.in_step and model is self.model

    def backward(self, loss: Any, gradient: Any = None) -> Any:
        """See that a gradient is computed, of a loss if it is a scalar's. Several of a step count by their mean.

        Returns the gradient with which the backward run has to begin: as a rule the given one.
        """
        if self._passed_over and not (self._training.in_step or self._updates_alone()) and self._counts():
            self._begin(self.model)
            if self._training.in_step:
                self._trains(None)
        in_step = self._training.in_step
        if not self._training.steps_begun:
            self._source.none = _NO_FORWARD
        self._losses_before = len(self._losses)
        if self._updates_alone() or not (in_step or self._joining is not None) or not self._counts():
            return gradient
        self._source.open = _NO_UPDATE
        scaled, self._scaled = self._scaled, None
        if in_step:
            if not self._backward_begun:
                self._backward_begun = True
                self._training.reach(REDUCED)
            if self.alterations is not None:
                gradient = self.alterations.backward(loss, gradient)
        if loss.numel() == 1:
            self._losses.append((loss if scaled is None or scaled[0] is not loss else scaled[1]).detach())
        return gradient

    def backward_failed(self) -> None:
        """See that the last backward run has raised an error: its gradient is not computed."""
        if self._training.in_step and not self._updates_alone():
            del self._losses[self._losses_before :]
            self._backward_failed = True

    def scales(self, loss: Any, scaled: Any) -> None:
        """See that a scaler of gradients has scaled a loss: the step's loss is the one without the scale."""
        if self._training.in_step:
            self._scaled = scaled, loss

    def batch(self, batch: Any) -> None:
        """See a batch that a data loader hands out."""
        self._fetched, self._fresh, self._evaluated = batch, True, False

    def evaluates(self) -> None:
        """See a forward run that trains nothing: a batch that no step has trained yet may be one of an evaluation.

        A batch that was trained stays that of the next steps, also where it is evaluated between them.
        """
        self._evaluated = self._evaluated or self._fresh

    def healed(self, step: int) -> None:
        """Begin anew with the state of another replica group after ``step``: the losses so far are the next step's."""
        model = self.model if self._joining is None else self._joining
        if model is None:
            return
        self.model, self._joining, self._step = model, None, step + 1
        self._training.begin(step, self.state)
        self._training.step_begin(self._step)

    def voted(self, committed: bool) -> None:
        """See the vote of the replica groups; a step without an update is trained again, with new batches."""
        if not committed:
            self._losses, self._batches = [], []

    def update_begins(self, optimizer: Any, frame: FrameType | None = None, *, closure: bool = False) -> None:
        """See that an optimizer begins to update; one within another's update is a part of it.

        ``frame`` is that of the update, None where ``update_ends`` is called also after an error in it. ``closure``
        says that the update has a closure, which computes the gradients unless they were computed before.
        """
        outermost = self._updates.begin(frame)
        if outermost:
            computes = closure and not self._is_step()
            self.closures.await_first(computes)
            if not computes:
                self._empty = self._empty or not self._training.steps_begun
                self.gradients_computed(optimizer)

    def gradients_computed(self, optimizer: Any) -> None:
        """See that the gradients of an update are there, so that the update of the weights begins."""
        if self._training.in_step and not self._losses and self._counts():
            self._source.unclear(
                f"{type(optimizer).__name__} updates in step {self._step}, and no scalar's backward() was called "
                "before in it"
            )
        if not self._is_step() or not self._may_end(optimizer):
            return
        self._optimizer = optimizer
        if self.alterations is not None:
            self.alterations.update_begins()
        self._training.reach("optimizer.update")

    def gradients_failed(self) -> None:
        """See that the closure of an update has raised an error: what it has computed counts for nothing."""
        self._losses, self._batches = [], []

    def _may_end(self, optimizer: Any) -> bool:
        """Return whether the update of an optimizer may end a step; of several, the named one alone."""
        if self._ends_with is not None:
            alive = self._optimizers.alive()
            if self._ends_with > len(alive):
                self._source.unclear(
                    f"job.step_optimizer names optimizer {self._ends_with}, and the script has made {len(alive)}"
                )
                return False
            return optimizer is alive[self._ends_with - 1]
        if self._optimizer is not None and self._optimizer is not optimizer:
            first, other = type(self._optimizer).__name__, type(optimizer).__name__
            self._source.unclear(
                f"there are two optimizers, {first} and {other}: a step may update with either. Name the one whose "
                "update ends a step (job.step_optimizer), or report the steps by lines of the job's own "
                "(chaos_steps.py)"
            )
            return False
        return True

    def update_ends(self, optimizer: Any) -> None:
        """See that an update has ended, and with it the step."""
        if self._updates.end() and self._optimizer is optimizer and self._is_step():
            self._end()

    def scaler_stepped(self, optimizer: Any, *, left_out: bool) -> None:
        """See that a scaler of gradients has had its turn: it leaves out the update where a gradient is not finite.

        Such a step ends without an update. A fused optimizer is called all the same, and has ended the step itself.
        """
        if not left_out or not self._counts():
            return
        if self._training.in_step:
            if self._updates.run() or not self._is_step() or not self._may_end(optimizer):
                return
            self._optimizer = optimizer
            if self.alterations is not None:
                self.alterations.update_begins()
            self._end()
        elif optimizer is not self._optimizer:
            return
        self._training.left_out_update(self._step)

    def _updates_alone(self) -> bool:
        """Return whether an update runs, and no closure that computes its gradients."""
        return self._updates.run() and not self.closures.runs

    def _counts(self) -> bool:
        source = self._source
        return not (source.is_unclear or source.lines)

    def _is_step(self) -> bool:
        """Return whether an update ends a step: a gradient was computed in it.

        ``torch.distributed.checkpoint`` updates once with gradients of zero to make the optimizer's state, outside of
        a step. The optimizer counts this update, and a state that is loaded afterwards puts the count right.
        """
        return self._counts() and self._training.in_step and bool(self._losses)

    def _joins(self, model: Any) -> bool:
        """Return whether this process waits for its state, so that its forward run belongs to no step yet."""
        if self.group is None or self._training.steps_begun or not self.group.awaits_state():
            return False
        if self._joining is None:
            self._joining, self._losses = model, []
            self._training.joins()
        return True

    def _begin(self, model: Any) -> None:
        training = self._training
        if self.model is None:
            optimizers = self._optimizers.alive()
            if not optimizers:
                self._source.gradients = True
                return
            done = self._steps_done(model, optimizers) if self.group is None else self.group.steps_done
            if done is None:
                return
            self._joining = None
            self.model, self._step = model, done
            if (save := training.loaded_save()) is not None:
                training.left_out = save.left_out
            own_slots = any(map(keeps_own_part, optimizers))
            training.begin(done, self.state, own_slots=own_slots, frozen=frozen_in(model))
        elif training.steps_begun in _LOOKED_AT and (slots := not_comparable(self._optimizers.alive())):
            self._source.unclear(
                f"{some(slots)} are lists of tensors, or objects, as LBFGS keeps them: the state of the optimizer "
                "cannot be compared"
            )
            return
        elif training.steps_begun in _LOOKED_AT and (changed := training.changed_since_step(frozen_in(model))):
            self._source.unclear(
                f"{some(changed)} changed after the update of step {self._step}, so the step ends later than the "
                "update of the optimizer"
            )
            return
        self._step += 1
        self._fresh = self._passed_over = False
        self._losses, self._batches, self._backward_begun = [], [], False
        training.step_begin(self._step)

    def _end(self) -> None:
        losses, batches = self._losses, self._batches
        self._losses, self._batches = [], []
        numbers = hyperparameters_of(self._optimizers.alive())
        self._training.step_end(_mean(losses), batches, hyperparameters=numbers)

    def _steps_done(self, model: Any, optimizers: list[Any]) -> int | None:
        if self._ends_with is not None:
            optimizers = optimizers[self._ends_with - 1 : self._ends_with] or optimizers
        return steps_before(
            self._training,
            self._source,
            optimizers,
            empty_update=self._empty,
            earlier=self._earlier,
            digests=lambda: parameter_digests(self._state_with(model)),
        )

    def state(self) -> list[tuple[str, Any]]:
        """Return the weights and buffers of all networks, and the optimizers' slots, by name."""
        return self._state_with(self.model)

    def _state_with(self, model: Any) -> list[tuple[str, Any]]:
        optimizers = self._optimizers.alive()
        return [*state_of(model, optimizers), *self._networks.state(model, optimizers)]


def _mean(losses: list[Any]) -> Any:
    if len(losses) == 1:
        return losses[0]
    values = [float(loss) for loss in losses]
    return sum(values) / len(values)
