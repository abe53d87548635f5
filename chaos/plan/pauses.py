"""Which faults come while the training pauses."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.schedule import PAUSE, Scheduled


def during(faults: Sequence[Scheduled]) -> dict[str, list[Scheduled]]:
    """The faults that are made while a pause lasts, by the pause's id: they wait for it to land, and nothing else."""
    pauses = {fault.fault.id: [fault] for fault in faults if fault.effect == PAUSE}
    found: dict[str, list[Scheduled]] = {name: [] for name in pauses}
    for fault in faults:
        if fault.fault.trigger.keys() == {"after"} and fault.fault.trigger["after"] in found:
            found[fault.fault.trigger["after"]].append(fault)
    return found
