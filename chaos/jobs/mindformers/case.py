"""One job, as input of the rules about its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.jobs.mindformers.typed import Typed
from chaos.jobs.mindformers.version import Release
from chaos.jobs.mindformers.yaml_file import Value
from chaos.scenario.errors import Problem
from chaos.scenario.models.job import Job


@dataclass(frozen=True)
class Case:
    """One job: its configuration, its part of the scenario, and the facts that plans need of it.

    ``on`` are the mechanisms that are switched on by name. ``written`` is the place of their switch. ``rehearsed`` says
    that the device layer is not genuine, so that the job may run without an Ascend device.
    """

    typed: Typed
    job: Job
    on: Sequence[str]
    written: str
    rehearsed: bool = False

    @property
    def release(self) -> Release:
        """The job's MindFormers."""
        return self.typed.release

    def before(self, *version: int) -> bool:
        """Return whether the job's MindFormers is known to be older."""
        return self.release.before(*version)

    def first_of(self, mechanisms: Sequence[str]) -> str | None:
        """Return the first of these mechanisms that is on."""
        return next((name for name in mechanisms if name in self.on), None)

    def value(self, *keys: str) -> Value | None:
        """Return the value of the first of these keys that the configuration has."""
        values = (self.typed.configuration.get(key) for key in keys)
        return next((value for value in values if value is not None and value.data is not None), None)

    def absent(self, nearest: str, message: str, hint: str) -> Problem:
        """Return a problem with a missing key, placed at its section or else at the file."""
        value = self.value(nearest)
        if value is not None:
            return value.problem(message, hint)
        origin = self.typed.origin(nearest)
        return Problem(origin.file, 0, 0, message, hint=hint)
