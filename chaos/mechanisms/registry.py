"""The rules by mechanism: each mechanism names the place of its rule, which is imported when a run is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import cast

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.timestamp import Timestamp
from chaos.history.reader import History
from chaos.mechanisms.case import Case
from chaos.mechanisms.markers import Launch
from chaos.mechanisms.restart_phases import restart_phase_ends
from chaos.plan.model import Plan
from chaos.plan.phases import is_restart
from chaos.plan.recovery.registry import Facts


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a mechanism is judged.

    Args:
        handlers: the handlers that it may call.
        judge: judges one recovery by it.
        phase_ends: yields the end of each phase of a recovery that began at a time, or why it is not known.
        judge_launch: judges the launch as a whole, whether the mechanism had to act or not.
        failures: kinds of lines by which the SDK's log says that it has failed.
        named: its name by the evidence, where several mechanisms leave the same signs.
        acted: whether it acted, where it leaves no signs.
    """

    handlers: tuple[str, ...]
    judge: Callable[[Case], None]
    phase_ends: Callable[[Launch, int], Iterator[tuple[str, Timestamp | str]]]
    judge_launch: Callable[[Plan, History, Artifacts, Collector], None] | None = None
    failures: frozenset[str] = frozenset()
    named: Callable[[History], str] | None = None
    acted: Callable[[History], bool] | None = None


RULES: Mapping[str, Rule] = Facts(lambda mechanism: cast("Rule", resolve_name(mechanism.rule)))


def phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase of the planned recovery that began at a time, or why it is not known."""
    mechanism = launch.plan.response.mechanism
    if mechanism is not None and mechanism in RULES:
        yield from RULES[mechanism].phase_ends(launch, after)
    elif is_restart(launch.plan):
        yield from restart_phase_ends(launch, after)
