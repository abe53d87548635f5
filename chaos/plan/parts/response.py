"""The duties of the mechanisms in answer to the faults, and the time that they may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from chaos.plan.recovery.registry import Facts, Names

PHASES: Mapping[str, tuple[str, ...]] = Facts(lambda mechanism: mechanism.phases)
"""Phases of the recovery, in order, by the mechanism that acts. Each mechanism's package says what ends its phases."""

ENDING = Names(lambda mechanism: mechanism.ends_launch)
"""Mechanisms with which the launch ends: training goes on when the job is started again."""

AFTER_RESTART = ("relaunch", "load", "compile", "first step", "caught up")
"""Phases that come only when the job is started again."""

RESTART = ("detection", "exit", *AFTER_RESTART)
"""Phases of the restart of a job that ends because no mechanism acts."""


def phases_of(mechanism: str | None, *, resumes: bool) -> tuple[str, ...]:
    """Return the phases of a recovery in order; none where neither a mechanism acts nor the job is started again.

    Where the launch ends without a new start, the recovery ends with the job.
    """
    if mechanism is None or mechanism not in PHASES:
        return RESTART if mechanism == "none" and resumes else ()
    whole = resumes or mechanism not in ENDING
    return tuple(name for name in PHASES[mechanism] if whole or name not in AFTER_RESTART)


@dataclass(frozen=True)
class Recovery:
    """The duties of one mechanism, in the order in which they come.

    ``faults`` are the ids of the faults that it answers. Training goes on after ``step``; for an end-of-life checkpoint
    it is the saved step. It is None where the trigger leaves it open. Where ``succeeds`` is False the mechanism is
    tried and must fail: the next recovery answers the same faults, or none can.

    ``restarted`` lists the ranks that get a new process within the launch, ``copied`` those whose state comes from a
    replica; with ``reads_checkpoint`` the state of all ranks comes from a periodic checkpoint. ``trained_again`` is the
    number of complete steps lost by the rollback, None where none is lost. The ranks in ``one_more`` may or may not
    have completed one step more when they are killed: it is a matter of time. Within an accumulation of gradients they
    may have completed up to ``more`` steps more. ``as_fault_free``: the state of ``step`` equals the fault-free run's;
    it does not follow a changed value that nothing has reverted. ``damaged`` maps ranks to the step of the file that a
    fault has damaged before: no rank may go on from it, and the scenario states the ``step``.
    """

    mechanism: str
    faults: tuple[str, ...]
    step: int | None
    succeeds: bool = True
    restarted: tuple[int, ...] = ()
    copied: tuple[int, ...] = ()
    reads_checkpoint: bool = False
    trained_again: int | None = None
    one_more: tuple[int, ...] = ()
    more: int = 1
    as_fault_free: bool = True
    damaged: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Budget:
    """Budgets in seconds. ``phases`` holds the phases of the recovery that have one.

    ``rollback`` is the largest number of steps that may be trained again.
    """

    total: float | None
    phases: dict[str, float]
    rollback: int | None = None


@dataclass(frozen=True)
class Response:
    """All duties of the mechanisms.

    ``mechanism`` is the last one that must succeed, None when nothing should act (no fault) and "none" when the plan
    shows that no mechanism can (the job just ends). ``recoveries`` holds all of them, in order. ``timings`` names the
    profile that the budget follows. With ``root_cause`` the launcher must name, at each restart, the process that was
    ``hit`` first.
    """

    mechanism: str | None
    budget: Budget
    timings: str
    recoveries: tuple[Recovery, ...] = ()
    root_cause: Literal["hit"] | None = None

    @property
    def goes_on(self) -> tuple[Recovery, ...]:
        """The recoveries after which training goes on within the launch, in order."""
        return tuple(recovery for recovery in self.recoveries if recovery.succeeds and recovery.mechanism not in ENDING)
