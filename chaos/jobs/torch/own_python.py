"""The part that job kinds share whose ranks may run in an interpreter of the user's own (``job.python``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from chaos.jobs.kind import JobError, JobKind
from chaos.jobs.torch.interpreter import interpreter, releases
from chaos.jobs.torch.probe import interpreter_probe
from chaos.machine.probe import Probe, version_of
from chaos.scenario.models.scenario import Scenario


class OwnPython(JobKind):
    """A job kind that asks the interpreter of a scenario for PyTorch, in place of the harness's."""

    packages: tuple[str, ...] = ("torch",)
    """The packages that this interpreter needs, and the harness's then need not have."""

    def own_python(self, scenario: Scenario, directory: Path) -> Path | None:
        """Return the interpreter that the scenario names."""
        return interpreter(scenario, directory)

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Leave out what another interpreter than the harness's has (:meth:`missing_files`)."""
        needs = super().needs_for(scenario)
        return needs if scenario.job.python is None else tuple(need for need in needs if need not in self.packages)

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Yield also the interpreter, if it cannot run the ranks."""
        yield from super().missing_files(scenario, directory)
        if (probe := self.interpreter_probe(scenario, directory)) is not None and not probe.ok:
            yield "job.python", probe.seen, probe.advice

    def interpreter_probe(self, scenario: Scenario, directory: Path) -> Probe | None:
        """Return whether the interpreter that the scenario names can run the ranks."""
        return interpreter_probe(scenario, directory, self.packages)

    def releases(self, scenario: Scenario, directory: Path) -> Mapping[str, str]:
        """Return the interpreter's releases, which decide about losses: another PyTorch may sum in another order."""
        python = interpreter(scenario, directory)
        if python is not None:
            return {"interpreter": str(python), **releases(python)}
        version = version_of("torch")
        return {} if version is None else {"torch": version}

    def torch_version(self, scenario: Scenario, directory: Path) -> str | None:
        """Return the release of the job's PyTorch on this machine; None where nothing says it."""
        try:
            return self.releases(scenario, directory).get("torch")
        except JobError:
            return None
