"""The baseline of a run: the same job without faults, made once and kept for every run that it serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.base.clock import Clock
from chaos.base.refusal import Refused
from chaos.base.wait import Deadline, Patience
from chaos.history.writer import HistoryWriter
from chaos.machine.lease_holder import Holder
from chaos.plan.build import build_plan
from chaos.plan.model import Plan
from chaos.plan.source import Source
from chaos.run.options import RunOptions
from chaos.run.prepare.inputs import Inputs
from chaos.run.prepare.needs import unknown_releases
from chaos.run.prepare.prepared import Prepared
from chaos.run.progress import Progress
from chaos.scenario.models.scenario import Expect, Scenario
from chaos.store.baseline_key import baseline_key
from chaos.store.baselines import copy_into, find_or_make, why_incomplete
from chaos.store.directory import RunDirectory

MakeRun = Callable[[str, Plan, Scenario], Path]
"""Runs a scenario with its plan, as the baseline with a key, in a directory of its own."""


@dataclass(frozen=True)
class BaselineOnlooker:
    """Records how far the search for a baseline is, for those who look at the run."""

    history: HistoryWriter
    progress: Progress
    deadline: Deadline

    def begins(self, key: str) -> None:
        """Record that the baseline with this key is looked for; it is empty for a run that the user names."""
        goal, left = "the fault-free run is there", self.deadline.remaining()
        self.history.record("wait.begin", name="baseline", goal=goal, seconds=left, key=key)

    def is_blocked(self, maker: Holder | None) -> None:
        """Record and show that another process makes it now; None where that has left no record."""
        who = None if maker is None else {"pid": maker.pid, "user": maker.user, "since": maker.since, "run": maker.run}
        self.progress.event(self.history.record("baseline.awaited", maker=who))


def without_faults(prepared: Prepared, scenario: Scenario) -> tuple[Scenario, Plan]:
    """Return the scenario without its faults and expectations, and its plan. Its ranks keep samples as before."""
    without = {"faults": (), "expect": Expect(), "finding": None, "failing": (), "baseline": "none"}
    bare, cell = scenario.model_copy(update=without), prepared.cell
    plan = build_plan(
        bare,
        Source(str(prepared.loaded.path), cell.lines, "", cell.origins, cell.facts),
        traits=prepared.traits,
        kinds={},
        draw_seed=lambda: 0,
        platform=prepared.registered.platform.traits,
    )
    # The ranks take samples by it; the plan of a run without a baseline would refuse it.
    return bare.model_copy(update={"expect": Expect(loss=scenario.expect.loss)}), plan


class BaselineTaker:
    """Finds the baseline of a cell among the kept ones, or has it made.

    Args:
        prepared: the cell.
        options: the options of the command line.
        versions: the versions of everything that decides losses and verdicts.
        cores: how many processor cores the job has.
        make: makes a run.
        progress: receives the origin of the baseline.
        clock: the time.
        deadline: the deadline of the whole run, which bounds the wait for another run's baseline.
    """

    def __init__(
        self,
        prepared: Prepared,
        options: RunOptions,
        *,
        versions: Mapping[str, str],
        cores: int,
        make: MakeRun,
        progress: Progress,
        clock: Clock,
        deadline: Deadline,
    ) -> None:
        self._prepared = prepared
        self._reports = options.reports
        self._versions = versions
        self._cores = cores
        self._make = make
        self._progress = progress
        self._clock = clock
        self._deadline = deadline

    def take(
        self,
        owned: RunDirectory,
        baseline: str,
        scenario: Scenario,
        inputs: Inputs,
        digest_steps: tuple[int, ...],
        onlooker: BaselineOnlooker,
    ) -> None:
        """Copy the baseline into a run.

        ``none`` needs no baseline; a name other than ``auto`` is an earlier run.

        Raises Refused where the given run cannot serve, and BaselineError where the job fails without faults.
        """
        if baseline == "none":
            return
        if baseline != "auto":
            path = self._reports / baseline  # an absolute path stays as it is
            onlooker.begins("")
            if (why := why_incomplete(path)) is not None:
                raise Refused(f"baseline {baseline}: {path} cannot serve as a baseline: {why}")
            copy_into(path, owned.path)
            return
        fingerprint = {**inputs.begun, "digest steps": str(digest_steps), **self._unshared(owned, scenario)}
        if scenario.needs_samples:  # without them the key is the key of a job that is compared bit for bit
            fingerprint["samples"] = "yes"
        key = baseline_key(
            scenario,
            fingerprint=fingerprint,
            versions=self._versions,
            sdk=self._prepared.sdk,
            cores=self._cores,
            same_losses=self._prepared.registered.job.traits.same_losses,
        )
        onlooker.begins(key)
        baseline_directory, made = find_or_make(
            self._reports,
            key,
            lambda: self._made(key, scenario),
            wait=Patience(scenario.deadlines.run, self._clock, (self._deadline,)),
            still=lambda: self._still(inputs),
            blocked=onlooker.is_blocked,
        )
        self._progress.note(f"baseline {baseline_directory.name} " + ("made" if made else "taken from the cache"))
        copy_into(baseline_directory, owned.path)

    def _made(self, key: str, scenario: Scenario) -> Path:
        self._progress.note("no baseline is cached for this job: running it once without faults")
        scenario, plan = without_faults(self._prepared, scenario)
        made = self._make(key, plan, scenario)
        from chaos.evidence.signatures.cluster_crash import OBSERVATION, crashes_of  # a job starts sooner without

        if crashes_of(made):
            self._progress.note(f"the fault-free run {made.name} {OBSERVATION}; running it once again")
            made = self._make(key, plan, scenario)
        return made

    def _unshared(self, owned: RunDirectory, scenario: Scenario) -> Mapping[str, str]:
        """Return the part of the key that keeps other runs from this baseline.

        There is one where a host has packages whose releases are not known here.
        """
        prepared = self._prepared
        beside = prepared.loaded.path.parent
        unknown = unknown_releases(scenario, self._versions, prepared.sdk, prepared.registered, beside)
        if not unknown:
            return {}
        self._progress.note(f"a baseline of this run's own: the hosts' releases of {', '.join(unknown)} are not known")
        return {"unknown releases": owned.token}

    def _still(self, inputs: Inputs) -> bool:
        """Return whether the job's inputs are unchanged; a changed source is an error."""
        changed = inputs.changed()
        if changed:
            listed = ", ".join(changed)
            self._progress.note(f"the baseline is not kept for other runs: what it reads has changed ({listed})")
        return not changed
