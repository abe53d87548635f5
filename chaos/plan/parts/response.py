"""What the mechanisms must do about the faults, and how long it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chaos.plan.recovery.registry import Facts, Names

PHASES: Mapping[str, tuple[str, ...]] = Facts(lambda mechanism: mechanism.phases)
"""Phases of the recovery, in order, by the mechanism that acts. Each mechanism says in its package what ends them."""

ENDING = Names(lambda mechanism: mechanism.ends_launch)
"""Mechanisms with which the launch ends: training goes on when the job is started again."""


@dataclass(frozen=True)
class Recovery:
    """What one mechanism must do, in the order in which they come.

    ``faults`` are the ids of the faults that it answers. Training goes on after ``step``; that of an end-of-life
    checkpoint is the step that is saved. It is None where the trigger leaves it open. Where ``succeeds`` is False the
    mechanism is tried and must fail: the next recovery answers the same faults, or none can.

    ``restarted`` lists the ranks that get a new process within the launch, ``copied`` those whose state comes from a
    replica; with ``reads_checkpoint`` the state of all ranks comes from a periodic checkpoint. ``trained_again`` is how
    many complete steps are lost by that, None where nothing is. The ranks in ``one_more`` may have completed one step
    more than that when they are killed, or not: it is a matter of time. Within an accumulation of gradients they may
    have completed up to ``more`` steps more. ``as_fault_free``: the state of ``step`` is
    that of the fault-free run; it is not behind a value that was changed and that nothing has taken back.
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


@dataclass(frozen=True)
class Budget:
    """Budgets in seconds. ``phases`` holds those of PHASES[mechanism] that have one."""

    total: float | None
    phases: dict[str, float]


@dataclass(frozen=True)
class Response:
    """Everything that mechanisms must do.

    ``mechanism`` is the last one that must succeed, None when nothing should act (no fault) and "none" when the plan
    shows that no mechanism can (the job just ends). ``recoveries`` holds all of them, in order. ``timings`` names the
    profile that the budget follows.
    """

    mechanism: str | None
    budget: Budget
    timings: str
    recoveries: tuple[Recovery, ...] = ()

    @property
    def goes_on(self) -> tuple[Recovery, ...]:
        """The recoveries after which training goes on within the launch, in order."""
        return tuple(recovery for recovery in self.recoveries if recovery.succeeds and recovery.mechanism not in ENDING)
