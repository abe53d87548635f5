"""Weights that a job does not train: every start makes them anew, so no checkpoint has to hold them.

So does a fine-tuning with adapters: the weights of the base come from a file of its own, and a checkpoint has only what
is trained. A rank records which weights are frozen with its state before the first step.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.facts import TRAIN
from chaos.history.event import Event
from chaos.history.reader import History


def made_anew(history: History, recorded: Event) -> frozenset[str]:
    """Return the frozen weights in a record of a rank's state that have the value of the job's first start.

    They are frozen in the first process of the rank, and in the one of the record. A weight that has another value was
    trained before it was frozen, or comes back another way, so a checkpoint has to hold it.
    """
    first = history.first("initial", attempt=TRAIN, rank=recorded.rank)
    own = history.first("initial", attempt=recorded.attempt, rank=recorded.rank, pid=recorded.pid)
    if first is None or own is None:
        return frozenset()
    begun, now = _parameters(first), _parameters(recorded)
    frozen = _frozen(first) & _frozen(own)
    return frozenset(name for name in frozen if name in begun and begun[name] == now.get(name))


def _parameters(event: Event) -> Mapping[str, object]:
    held = event.data.get("parameters")
    return held if isinstance(held, dict) else {}


def _frozen(event: Event) -> frozenset[str]:
    names = event.data.get("frozen")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
