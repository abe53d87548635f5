"""Triggers that wait for the end of another fault: only a lasting fault ends while the job goes on."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.plan.problems import Problems
from chaos.scenario.models.fault import Trigger
from chaos.scenario.models.ids import fault_ids
from chaos.scenario.models.scenario import Scenario


def check_healed(scenario: Scenario, lasting: frozenset[str], problems: Problems) -> None:
    """Note triggers that wait for the end of a fault that ends only with the job.

    ``lasting`` are the fault kinds that the harness ends. A fault that a mechanism repairs needs no such trigger: a
    later step is reached only behind the recovery.
    """
    kinds = dict(zip(fault_ids(scenario.faults), (fault.kind for fault in scenario.faults), strict=True))
    for index, fault in enumerate(scenario.faults):
        for path, name in _named(fault.trigger, f"faults.{index}.trigger"):
            kind = kinds.get(name)
            if kind is not None and kind not in lasting:
                problems.add(
                    f"{path}.healed",
                    f"fault {name!r} is a {kind}, which does not end by the harness's word while the job goes on",
                    text=name,
                    hint="after a recovery use a later step: no rank reaches it before",
                )


def _named(trigger: Trigger, path: str) -> Iterator[tuple[str, str]]:
    if trigger.healed is not None:
        yield path, trigger.healed
    for key, inner in (("all", trigger.all), ("any", trigger.any)):
        for index, part in enumerate(inner or ()):
            yield from _named(part, f"{path}.{key}.{index}")
