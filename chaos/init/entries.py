"""The parts of a drafted scenario: what the user wishes, and each value with the place that says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Ask = Callable[[str, str], str]
"""Asks a question with a default; there is none where nobody can answer."""


@dataclass(frozen=True)
class Wishes:
    """The values of the user's flags; None and nothing leave a value to the survey."""

    name: str | None = None
    ranks: int | None = None
    steps: int | None = None
    checkpoint_interval: int | None = None
    savers: str | None = None
    resume_arguments: tuple[str, ...] | None = None
    device: str | None = None
    pipeline_stages: int | None = None
    model_parallel: int | None = None
    sharded_optimizer: bool = False
    fault: str = ""
    fault_step: int | None = None


@dataclass(frozen=True)
class Entry:
    """A value of the scenario, why it is this one, and whether the user has to check it."""

    value: Any
    why: str
    guessed: bool = False


@dataclass(frozen=True)
class Launcher:
    """The keys of a launcher of the user's own; ``variables`` is None where the usual variables number the ranks."""

    command: Entry
    variables: Entry | None


@dataclass(frozen=True)
class Draft:
    """A scenario to be written.

    ``sees_framework`` says that the job kind sees into the framework that the script imports, ``kinds_launcher`` is the
    kind's own launcher. ``resumes`` says that the job goes on from a checkpoint, ``restarts`` how often the kind's
    launcher may start all ranks again by itself, None where it starts none.
    """

    name: str
    kind: str
    sees_framework: bool
    kinds_launcher: str
    script: str
    ranks: Entry
    arguments: Entry
    launcher: Launcher | None
    device: Entry
    steps: Entry
    interval: Entry | None
    savers: Entry | None
    exports: Entry | None
    """The names of files that no line of the script loads; None where it saves none, or the text leaves it open."""

    resumes: bool
    resume_arguments: Entry | None
    restarts: Entry | None
    parallel: dict[str, Entry]
    open_shard: Entry | None
    """Why nothing of shards is written, where the script may make some."""

    nodes: Entry | None
    python: Entry | None
    environment: dict[str, Entry]
    step_optimizer: Entry | None
    """The optimizer whose update ends a step; None for a single optimizer, and where the kind tells none apart."""

    seeded: Entry | None
    """That the agent seeds the script's generators; None where the script does, or the kind cannot."""

    fault: str
    fault_step: Entry

    @property
    def guesses(self) -> list[tuple[str, Entry]]:
        """The entries that the user has to check, by their keys."""
        entries = {
            "cluster.ranks": self.ranks,
            "cluster.parallel.shard (left out)": self.open_shard,
            "job.python (left out)": self.python,
            "job.arguments": self.arguments,
            "job.rank_variables": None if self.launcher is None else self.launcher.variables,
            "job.device": self.device,
            "job.steps": self.steps,
            "job.checkpoint_interval": self.interval,
            "job.step_optimizer": self.step_optimizer,
            "job.savers": self.savers,
            "job.resume_arguments": self.resume_arguments,
            "faults.trigger.step": self.fault_step,
            **{f"cluster.parallel.{name}": entry for name, entry in self.parallel.items()},
            **{f"job.environment.{name}": entry for name, entry in self.environment.items()},
        }
        return [(key, entry) for key, entry in entries.items() if entry is not None and entry.guessed]
