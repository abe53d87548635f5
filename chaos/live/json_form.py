"""The state of a run as plain data, for a page."""

from __future__ import annotations

import math
from dataclasses import asdict, fields
from typing import Any

from chaos.live.state import LiveState, RecoveryState

FORMAT = 1


def as_json(state: LiveState) -> dict[str, Any]:
    """Return the state as data for a JSON encoder; a number that is not finite becomes its name.

    ``format``: the number of this form.
    ``run``, ``directory``: the run's name and the path of its directory.
    ``scenario``, ``cell``: what is run; ``cell_number`` of ``cell_count`` cells of the call, null where not recorded.
    ``baseline_of``: whether this is a fault-free run, made for another run.
    ``alive``: whether the harness of the run lives; null where it cannot be said.
    ``stage``: preparing, baseline, train, resume, between, judging, ended, broken off (the harness has gone), or not
    followed (``problems`` has the reason). ``stage_words``: the same for a reader, with the verdict.
    ``started``, ``now``: seconds of the epoch; ``elapsed``: seconds since the start; ``limit``: how many it may take.
    ``verdict``: that of result.json, null before.
    ``step`` of ``steps``: the last step that every living rank has begun, and the last step of the training.
    ``waiting``: what the harness waits for (``name``, ``goal``, ``since``, ``elapsed``, ``limit``, ``left``,
    ``missing``), or null.
    ``baseline_maker``: who makes the fault-free run that is waited for (``pid``, ``user``, ``since``, ``elapsed``, and
    the name of its ``run``), or null.
    ``faults``: ``id``, ``kind``, ``ranks``, ``role``, ``state`` (planned, armed, acting, landed, missed, undone),
    ``waits_for``, ``step`` and ``phase`` where it landed, ``since``, ``elapsed``, ``text``.
    ``recovery``: ``mechanism``, ``number`` of ``of``, ``elapsed``, ``budget``, ``over``, ``ended``, ``phase`` (the name
    of the present one), ``phases`` with ``name``, ``state`` (ended, now, later, missing), ``seconds``, ``budget``,
    ``over``.
    ``loss``: ``rank``, ``step``, ``loss``, ``baseline``, ``difference``, ``by_log`` (whether only logs hold it), or
    null.
    ``ranks``: their number; ``states``: the number of ranks in each state; ``rank``: each with ``rank``, ``node``,
    ``group`` (its replica group), ``attempt``, ``state``, ``pid``, ``processes``, ``step``, ``detail``, ``since``,
    ``loss``, ``end`` (``how``, ``planned``).
    ``groups``: ``name``, ``kind`` (node, replica group, ranks), ``ranks``, ``count``, ``states``.
    ``ends``: how many processes have ended as ``planned``, and ``unplanned``.
    ``cores``: ``held`` by this run, and the ``holders`` of those that it waits for.
    ``problems``: sentences about files that cannot be read.
    """
    data = {field.name: getattr(state, field.name) for field in fields(state)}
    each, held, holders = data.pop("ranks"), data.pop("cores"), data.pop("holders")
    waiting, recovery, loss = state.waiting, state.recovery, state.loss
    data |= {
        "stage_words": state.stage_words,
        "waiting": None if waiting is None else {**asdict(waiting), "left": waiting.left},
        "baseline_maker": None if state.baseline_maker is None else asdict(state.baseline_maker),
        "faults": [asdict(fault) for fault in state.faults],
        "recovery": None if recovery is None else _recovery(recovery),
        "loss": None if loss is None else {**asdict(loss), "difference": loss.difference},
        "groups": [asdict(group) for group in state.groups],
        "ends": asdict(state.ends),
        "problems": list(state.problems),
        "ranks": len(each),
        "states": state.states,
        "rank": [asdict(rank) for rank in each],
        "cores": {"held": list(held), "holders": [asdict(holder) for holder in holders]},
    }
    plain: dict[str, Any] = _finite({"format": FORMAT, **data})
    return plain


def _recovery(recovery: RecoveryState) -> dict[str, Any]:
    phases = [{**asdict(phase), "over": phase.over} for phase in recovery.phases]
    now = recovery.phase
    return {**asdict(recovery), "phases": phases, "phase": None if now is None else now.name, "over": recovery.over}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
