"""Part of check ``resume``: a rank that counts one step and holds the weights of another.

A script may save an older copy of the state under a newer number, or restore the number alone. The run's own record of
each step shows it, whatever the form of the file. It proves nothing where the weights of both steps are equal, where no
step has the rank's weights, or where the step that the rank counts was not recorded.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.parameters import is_weight
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, digests, step_of
from chaos.evidence.statement_data import STATE, about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

COUNTED = "each rank goes on with the weights of the step that it counts"


def judge_other_step(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Fail where a rank is proven to hold the weights of another step. Say nothing where that is not proven."""
    recorded = digests(history, TRAIN)
    for rank in range(plan.layout.ranks):
        initial = history.first("initial", attempt=RESUME, rank=rank)
        counted = _counted(history, rank)
        own = recorded.get(rank, {})
        if initial is None or counted is None or counted not in own:
            continue
        held, right = _weights(initial), _weights(own[counted])
        if not held or held.keys() != right.keys() or held == right:
            continue
        others = [step for step, event in own.items() if _weights(event) == held]
        if not others:
            continue
        step = min(others, key=lambda other: (abs(other - counted), other))
        load = history.last("load.end", attempt=RESUME, rank=rank)
        file = None if load is None else artifacts.recorded(str(load.data.get("path")))
        observation = f"rank {rank} holds the weights of step {step}, its counter says {counted}"
        observation += f"; it loaded {file}" if file is not None else ""
        name = next(name for name in held if held[name] != right[name])
        data = about(
            rank, step=counted, file=file, parameters=[name], quantity=STATE, expected=right[name], seen=held[name]
        )
        places = (initial.source, own[step].source, own[counted].source, *([] if load is None else [load.source]))
        collector.fail(COUNTED, observation, *places, data=data)


def _counted(history: History, rank: int) -> int | None:
    """Return the step that a rank counts when it begins to train again; None where its records do not say one."""
    begin = history.first("step.begin", attempt=RESUME, rank=rank)
    start = history.first("train.begin", attempt=RESUME, rank=rank)
    first = None if begin is None else step_of(begin) - 1
    initial_step = None if start is None else start.data.get("initial_step")
    return first if initial_step in (None, first) else None


def _weights(event: Event) -> Mapping[str, object]:
    parameters = event.data.get("parameters")
    return {name: parameters[name] for name in parameters if is_weight(name)} if isinstance(parameters, dict) else {}
