"""A run's hold on a cluster's node: the faults that hold it, the parts that each has changed, and their values before.

The hold is kept in annotations of the node itself, so the process that puts the node back finds it there. Several
faults of a run may hold one node; a part that two of them have changed alike is put back with the last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chaos.base.strict_json import parse
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.workload import Manifest

STATUS = "status"
"""The part of a node that its kubelet puts back; the other parts are keys of its ``spec``."""

NO_FAULT = ""
"""The fault of a hold that does not name its fault, as an older harness wrote it."""


class UnreadableHold(PlatformError):
    """The annotations are not as a run writes them."""


@dataclass(frozen=True)
class Hold:
    """The hold of one run.

    ``faults`` has the parts that each fault has changed; ``kept`` has the values of keys of ``spec`` before, and the
    values that the run has given them.
    """

    run: str
    faults: Mapping[str, tuple[str, ...]]
    kept: Mapping[str, Mapping[str, Any]]

    def with_fault(self, fault: str, spec: Mapping[str, Any], changes: Mapping[str, Any], status: bool) -> Hold:
        """Return the hold when a fault makes ``changes`` to ``spec``, and to the status if ``status`` is True."""
        made = {key: {"before": spec.get(key), "made": value} for key, value in changes.items()}
        parts = {*self.faults.get(fault, ()), *changes, *([STATUS] if status else [])}
        return replace(self, faults={**self.faults, fault: tuple(sorted(parts))}, kept={**made, **self.kept})

    def of(self, fault: str | None) -> tuple[str, ...]:
        """Return the faults whose hold ends with that fault; None: with the run."""
        return tuple(candidate for candidate in self.faults if fault is None or candidate in (fault, NO_FAULT))

    def without(self, fault: str | None, spec: Mapping[str, Any], ready: bool) -> tuple[Manifest, Hold]:
        """Return the keys of ``spec`` to put back when a fault ends, with their values, and the remaining hold.

        Keys that somebody else has changed meanwhile stay as they are. A fault that has changed the status holds the
        node until its kubelet is ``ready``. It holds nothing of the ``spec`` any more, so later changes by somebody
        else to a node that does not come back are theirs.
        """
        ends = self.of(fault)
        waits = {end: (STATUS,) for end in ends if STATUS in self.faults[end] and not ready}
        staying = {fault_id: parts for fault_id, parts in self.faults.items() if fault_id not in ends}
        held = {part for parts in staying.values() for part in parts}
        back = {
            key: values["before"]
            for key, values in self.kept.items()
            if key not in held and spec.get(key) == values["made"]
        }
        kept = {key: values for key, values in self.kept.items() if key in held}
        return back, replace(self, faults={**staying, **waits}, kept=kept)

    def annotations(self) -> dict[str, str | None]:
        """Return the annotations as they are written; None removes one."""
        if not self.faults:
            return dict.fromkeys((names.HELD_ANNOTATION, names.HELD_FOR_ANNOTATION, names.BEFORE_ANNOTATION))
        return {
            names.HELD_ANNOTATION: self.run,
            names.HELD_FOR_ANNOTATION: json.dumps(self.faults, sort_keys=True),
            names.BEFORE_ANNOTATION: json.dumps(self.kept, sort_keys=True),
        }


def holder(node: Mapping[str, Any]) -> str | None:
    """Return the run that holds a node; None for none."""
    return _marks(node).get(names.HELD_ANNOTATION)


def hold_of(run: str, node: Mapping[str, Any]) -> Hold:
    """Return the run's hold on a node. Raises UnreadableHold where the annotations are not as a run writes them."""
    if holder(node) != run:
        return Hold(run, {}, {})
    marks = _marks(node)
    kept = _mapping(marks, names.BEFORE_ANNOTATION)
    if not all(isinstance(entry, dict) and {"before", "made"} <= entry.keys() for entry in kept.values()):
        raise _unreadable(names.BEFORE_ANNOTATION)
    faults = _mapping(marks, names.HELD_FOR_ANNOTATION)
    if not faults:
        return Hold(run, {NO_FAULT: (*sorted(kept), STATUS)}, kept)
    if not all(isinstance(parts, list) and all(isinstance(part, str) for part in parts) for parts in faults.values()):
        raise _unreadable(names.HELD_FOR_ANNOTATION)
    return Hold(run, {fault: tuple(parts) for fault, parts in faults.items()}, kept)


def is_ready(node: Mapping[str, Any]) -> bool:
    """Return whether the node's kubelet says that it is ready."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _marks(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return (node.get("metadata") or {}).get("annotations") or {}


def _mapping(marks: Mapping[str, Any], name: str) -> dict[str, Any]:
    try:
        mapping = parse(marks.get(name) or "{}")
    except ValueError:
        mapping = None
    if not isinstance(mapping, dict):
        raise _unreadable(name)
    return mapping


def _unreadable(name: str) -> UnreadableHold:
    return UnreadableHold(f"its annotation {name} is not as a run writes it; look at the node by hand")
