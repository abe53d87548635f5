"""The part of a scenario about its faults: fault, target and trigger."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from chaos.scenario.models.terms import NAME, Handler, Model, Phase, Ranks, Seconds

MAX_FAULTS = 1000
"""Most faults of one schedule."""


class RandomTarget(Model):
    """Ranks drawn by a seed. The seed is printed and recorded; give it back to draw the same ranks again."""

    count: int = Field(1, ge=1, description="How many ranks are drawn.")
    seed: int | None = Field(None, ge=0, description="Seed of the draw. Default: a fresh one.")
    among: Ranks | None = Field(None, min_length=1, description="Ranks to draw from. Default: all of them.")


class Target(Model):
    """The target of a fault: exactly one of these."""

    rank: int | None = Field(None, ge=0, description="One rank.")
    ranks: Ranks | None = Field(None, min_length=1, description="Several ranks.")
    node: int | None = Field(None, ge=0, description="All ranks of one node.")
    replica_group: int | None = Field(None, ge=0, description="All ranks of the n-th replica group.")
    role: Literal["controller", "last_stage", "launcher", "scheduler", "lighthouse"] | None = Field(
        None,
        description=(
            "The rank with the controller, the ranks of the last pipeline stage, the launcher (msrun "
            "and its agent), msrun's scheduler, or torchft's lighthouse."
        ),
    )
    random: RandomTarget | None = Field(None, description="Ranks drawn by a seed.")


class LogLine(Model):
    """A line that a rank (or any process of the job) logs."""

    contains: str = Field(min_length=1, description="Text that the line contains.")
    rank: int | None = Field(None, ge=0, description="Rank that writes the log. Default: any process.")


class Trigger(Model):
    """When a fault is injected. Several keys in one trigger must all hold. A trigger fires once."""

    step: int | None = Field(None, ge=1, description="Step, counted from 1 over the whole job.")
    phase: Phase | None = Field(
        None,
        description=(
            "Point in the step (default step.begin); with handler: save_ckpt, a point checkpoint.* of that save."
        ),
    )
    handler: Handler | None = Field(None, description="The SDK calls this handler in the target ranks.")
    elapsed: Seconds | None = Field(None, description="Time since every rank has begun its first step.")
    log: LogLine | None = Field(None, description="A log line.")
    after: str | None = Field(None, description="Id of another fault that has landed.")
    healed: str | None = Field(None, description="Id of a lasting fault that has ended while the job goes on.")
    all: tuple[Trigger, ...] | None = Field(None, strict=False, min_length=1, description="All of these.")
    any: tuple[Trigger, ...] | None = Field(None, strict=False, min_length=1, description="The first of these.")


class Fault(Model):
    """One fault: its kind, its target, its trigger."""

    id: str | None = Field(
        None,
        pattern=NAME,
        max_length=100,
        description="Name in reports. Default: kind and place in the schedule, as kill-1.",
    )
    kind: str = Field(description="A registered fault kind.")
    target: Target = Field(description="Target of the fault.")
    trigger: Trigger = Field(description="When it is injected.")
    parameters: dict[str, Any] = Field({}, description="Parameters of the fault kind.")
