"""Rules about faults: their names, their targets and their triggers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chaos.scenario.errors import quote, suggest
from chaos.scenario.lines import Path
from chaos.scenario.models.fault import MAX_FAULTS, Target, Trigger
from chaos.scenario.models.ids import default_id
from chaos.scenario.names import KnownNames
from chaos.scenario.rules_base import Report, listed, mapped, numbered, one_rank, rank_range, text, whole


def check_faults(data: dict[str, Any], names: KnownNames, report: Report) -> None:
    """Report every broken rule of the fault schedule."""
    cluster, job = mapped(data.get("cluster")), mapped(data.get("job"))
    ranks, nodes, steps = whole(cluster.get("ranks")), whole(cluster.get("nodes", 1)), whole(job.get("steps"))
    faults = listed(data.get("faults"))[:MAX_FAULTS]
    for index, fault in enumerate(faults):
        path: Path = ("faults", index)
        kind = text(mapped(fault).get("kind"))
        if names.fault_kinds is not None and kind is not None and kind not in names.fault_kinds:
            hint = suggest(kind, names.fault_kinds, "fault kinds")
            report((*path, "kind"), f"there is no fault kind {quote(kind)}", hint)
        _check_target(mapped(fault).get("target"), (*path, "target"), ranks, nodes, report)
        for where, trigger in _triggers(mapped(fault).get("trigger"), (*path, "trigger")):
            _check_trigger(trigger, where, ranks, steps, report)
    _check_order(faults, report)


def _check_target(target: Any, path: Path, ranks: int | None, nodes: int | None, report: Report) -> None:
    if not isinstance(target, dict):
        return
    # An unknown key is reported as such; it may be the one key that was meant.
    written = [key for key in target if key in Target.model_fields]
    if len(written) > 1:
        report(path, f"a target has exactly one key, this has {len(written)}: {', '.join(written)}")
    elif not target:
        report(path, f"a target needs one of the keys {', '.join(Target.model_fields)}")
    _refuse_nothing(target, written, path, report)
    one_rank(target.get("rank"), (*path, "rank"), ranks, report)
    rank_range(listed(target.get("ranks")), (*path, "ranks"), ranks, report)
    node, group = whole(target.get("node")), whole(target.get("replica_group"))
    if node is not None and nodes and nodes > 0 and node >= nodes:
        report((*path, "node"), f"node {node} of {nodes}: {numbered('nodes', nodes)}")
    if group is not None and ranks and 0 < ranks <= group:
        report((*path, "replica_group"), f"replica group {group}: {ranks} ranks cannot form so many groups")
    if isinstance(random := target.get("random"), dict):
        _check_random(random, (*path, "random"), ranks, report)


def _check_random(random: dict[str, Any], path: Path, ranks: int | None, report: Report) -> None:
    among = random.get("among")
    rank_range(listed(among), (*path, "among"), ranks, report)
    count = whole(random.get("count", 1))
    available = len(among) if isinstance(among, list) else ranks
    if count is not None and available and available > 0 and count > available:
        source = f"the {available} in 'among'" if isinstance(among, list) else f"{available} ranks"
        report((*path, "count"), f"{count} ranks cannot be drawn from {source}")


def _triggers(trigger: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a trigger and those inside it."""
    if not isinstance(trigger, dict):
        return
    yield path, trigger
    for key in ("all", "any"):
        for index, inner in enumerate(listed(trigger.get(key))):
            yield from _triggers(inner, (*path, key, index))


def _check_trigger(trigger: dict[str, Any], path: Path, ranks: int | None, steps: int | None, report: Report) -> None:
    if not trigger:
        report(path, f"a trigger needs at least one of the keys {', '.join(Trigger.model_fields)}")
    _refuse_nothing(trigger, [key for key in trigger if key in Trigger.model_fields], path, report)
    in_save = trigger.get("handler") == "save_ckpt" and str(trigger.get("phase")).startswith("checkpoint.")
    if "phase" in trigger and "step" not in trigger and not in_save:
        hint = "with 'handler: save_ckpt' it may be a point checkpoint.* of that save"
        report((*path, "phase"), "'phase' needs 'step' beside it: a phase is a point in a step", hint, on_key=True)
    if "handler" in trigger and "step" in trigger:
        hint = "a moment inside a recovery is given by the handler, with 'after' for which one of several"
        report((*path, "handler"), "'handler' and 'step' are two different moments of a rank", hint, on_key=True)
    step = whole(trigger.get("step"))
    if step is not None and steps is not None and steps > 0 and step > steps:
        report((*path, "step"), f"step {step} of {steps}: the job trains {steps} steps")
    one_rank(mapped(trigger.get("log")).get("rank"), (*path, "log", "rank"), ranks, report)


def _refuse_nothing(mapping: dict[str, Any], written: list[str], path: Path, report: Report) -> None:
    for key in written:
        if mapping[key] is None:
            report((*path, key), f"{quote(key)} has no value")


def _check_order(faults: list[Any], report: Report) -> None:
    """Check that ids are unique, that ``after`` names another fault, and that every fault can have its turn."""
    ids: dict[str, int] = {}
    own_ids: list[str | None] = []
    for index, fault in enumerate(faults):
        written, kind = mapped(fault).get("id"), text(mapped(fault).get("kind"))
        name = default_id(kind, index + 1) if written is None and kind is not None else text(written)
        own_ids.append(name)
        if name is None:
            continue
        if name in ids:
            message = f"fault id {quote(name)} is taken by fault {ids[name] + 1} of the schedule"
            report(("faults", index, "id") if written is not None else ("faults", index), message)
        ids.setdefault(name, index)
    sound = None not in own_ids
    for index, fault in enumerate(faults):
        for path, trigger in _triggers(mapped(fault).get("trigger"), ("faults", index, "trigger")):
            for key, after in _waits_for(trigger):
                if after == own_ids[index]:
                    report((*path, key), f"fault {quote(after)} cannot wait for itself")
                    sound = False
                elif after not in ids:
                    if None not in own_ids:
                        hint = suggest(after, set(ids) - {str(own_ids[index])}, "other faults")
                        report((*path, key), f"there is no fault {quote(after)}", hint)
                    sound = False
    if sound:
        _check_reachable(faults, [str(name) for name in own_ids], report)


def _check_reachable(faults: list[Any], fault_ids: list[str], report: Report) -> None:
    """Report faults that wait for each other in a ring.

    A ring through ``any`` is harmless if another alternative can fire, so the faults that can fire are worked out one
    by one: each fault that lands may free those that wait for it.
    """
    triggers = [mapped(fault).get("trigger") for fault in faults]
    waits: list[list[tuple[Path, str]]] = []
    freed_by: dict[str, list[int]] = {}
    for index, trigger in enumerate(triggers):
        nested = _triggers(trigger, ("faults", index, "trigger"))
        waits.append([((*path, key), after) for path, inner in nested for key, after in _waits_for(inner)])
        for after in {after for _, after in waits[index]}:
            freed_by.setdefault(after, []).append(index)
    landed: set[str] = set()
    to_try = list(range(len(faults)))
    while to_try:
        index = to_try.pop()
        if fault_ids[index] not in landed and _can_fire(triggers[index], landed):
            landed.add(fault_ids[index])
            to_try.extend(freed_by.get(fault_ids[index], ()))
    blocking = {
        fault_ids[index]: next((path, after) for path, after in waits[index] if after not in landed)
        for index in range(len(faults))
        if fault_ids[index] not in landed
    }
    for name, (path, _) in blocking.items():
        report(path, f"fault {quote(name)} can never fire: it waits for {_chain(name, blocking)}")


def _waits_for(trigger: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the keys of a trigger that name another fault, each with the name."""
    return [(key, name) for key in ("after", "healed") if (name := text(trigger.get(key))) is not None]


def _chain(name: str, blocking: dict[str, tuple[Path, str]]) -> str:
    names = [blocking[name][1]]
    visited = {name}
    while names[-1] not in visited and len(names) < 8:
        visited.add(names[-1])
        names.append(blocking[names[-1]][1])
    return ", which waits for ".join(map(quote, names))


def _can_fire(trigger: Any, landed: set[str]) -> bool:
    parts = mapped(trigger)
    if any(after not in landed for _, after in _waits_for(parts)):
        return False
    if not all(_can_fire(inner, landed) for inner in listed(parts.get("all"))):
        return False
    any_of = listed(parts.get("any"))
    return not any_of or any(_can_fire(inner, landed) for inner in any_of)
