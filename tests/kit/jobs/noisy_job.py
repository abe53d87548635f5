"""A small training with dropout in numpy, recorded as ranks record theirs: noise, and the defects of a resume.

``kernels`` is the relative size of what other orders of sums do to a gradient. With ``own_masks`` no seed of the masks
is set, so every run drops other values. A defect begins after step RESUMED.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaos.agent.digests import Sampler, array_digest
from chaos.calibration.noise import Recorded
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.response import Recovery
from tests.kit.plans import plan_with

STEPS, RESUMED, RANKS = 16, 8, 1
_INPUTS, _WIDTH, _CLASSES, _BATCH, _KEEP, _RATE, _MOMENTUM = 12, 24, 4, 16, 0.8, 0.1, 0.9

Array = NDArray[Any]


def the_plan(**values: Any) -> Plan:
    """A plan whose losses after step RESUMED have a mean of their own."""
    recoveries = (Recovery("UCE", (), RESUMED),)
    return plan_with(ranks=RANKS, replica_groups=((0,),), last_step=STEPS, recoveries=recoveries, **values)


def trained(run: int, *, kernels: float = 0.0, own_masks: bool = False, defect: str = "") -> Recorded:
    """The record of one run, which its number tells from others.

    A defect is ``masks`` (drawn from the beginning again), ``moments`` (zero again) or ``batch`` (one is left out).
    """
    events = list(_events(run, kernels, own_masks, defect))
    return Recorded(f"run-{run}", {0: events[0]}, {0: {event.data["step"]: event for event in events[1:]}})


def history_of(record: Recorded) -> History:
    """The history of a run with this record, as far as the check ``loss`` reads it."""
    ends = [_event("step.end", step=STEPS), _event("rank.exit", code=0, signal=None)]
    started = _event("writer.start", run=record.name)
    return History((started, record.starts[0], *record.digests[0].values(), *ends))


def _events(run: int, kernels: float, own_masks: bool, defect: str) -> Iterator[Event]:
    first, data = np.random.default_rng(1), np.random.default_rng(2)
    state = {
        "layer1.weight": first.normal(size=(_INPUTS, _WIDTH)) * 0.3,
        "layer1.bias": np.zeros(_WIDTH),
        "layer2.weight": first.normal(size=(_WIDTH, _CLASSES)) * 0.3,
        "layer2.bias": np.zeros(_CLASSES),
    }
    state.update({f"moments.{name}": np.zeros_like(value) for name, value in state.items()})
    truth = data.normal(size=(_INPUTS, _CLASSES))
    inputs = data.normal(size=(STEPS + 1, _BATCH, _INPUTS))
    own = np.random.default_rng((3, run))
    yield _event("initial", **_state(state, 0))
    for step in range(1, STEPS + 1):
        resumed = step > RESUMED
        if defect == "moments" and step == RESUMED + 1:
            state.update({name: np.zeros_like(value) for name, value in state.items() if name.startswith("moments.")})
        batch = inputs[step - 1 + (defect == "batch" and resumed)]
        of_masks = step - RESUMED if defect == "masks" and resumed else step
        masks = own if own_masks else np.random.default_rng((4, of_masks))
        mask = (masks.random((_BATCH, _WIDTH)) < _KEEP) / _KEEP
        loss = _step(state, batch, truth, mask, kernels, own)
        yield _event("digest", step=step, loss=loss.hex(), batch=array_digest(batch), **_state(state, step))


def _step(
    state: dict[str, Array], batch: Array, truth: Array, mask: Array, kernels: float, own: np.random.Generator
) -> float:
    """Train one step with momentum; return the loss."""
    hidden = np.maximum(batch @ state["layer1.weight"] + state["layer1.bias"], 0) * mask
    scores = hidden @ state["layer2.weight"] + state["layer2.bias"]
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    labels = (batch @ truth).argmax(axis=1)
    rows = np.arange(len(batch))
    loss = float(-np.log(shares[rows, labels]).mean())
    shares[rows, labels] -= 1
    shares /= len(batch)
    back = (shares @ state["layer2.weight"].T) * mask * (hidden > 0)
    gradients = {
        "layer1.weight": batch.T @ back,
        "layer1.bias": back.sum(axis=0),
        "layer2.weight": hidden.T @ shares,
        "layer2.bias": shares.sum(axis=0),
    }
    for name, gradient in gradients.items():
        noisy = gradient * (1 + kernels * own.normal(size=gradient.shape))
        state[f"moments.{name}"] = _MOMENTUM * state[f"moments.{name}"] + noisy
        state[name] = state[name] - _RATE * state[f"moments.{name}"]
    return loss


def _state(state: dict[str, Array], step: int) -> dict[str, Any]:
    arrays = {**state, "global_step": np.array([step])}
    return {
        "parameters": {name: array_digest(array) for name, array in arrays.items()},
        "samples": Sampler(1).samples(arrays.items()),
    }


def _event(event: str, **data: Any) -> Event:
    return Event(event, int(data.get("step", 0)), 0, "agent", 0, "train", 0, 1, data)
