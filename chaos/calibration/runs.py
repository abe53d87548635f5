"""The fault-free runs of a calibration: the scenario's job without its faults, several times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.base.refusal import Refused
from chaos.calibration.noise import Recorded, recorded
from chaos.history.reader import read_history
from chaos.plan import io
from chaos.run.baseline import without_faults
from chaos.run.options import RunOptions, RunOutcome
from chaos.run.prepare.measured_job import JOB, changes, record_of
from chaos.run.prepare.prepared import Prepared
from chaos.scenario.models.scenario import Expect, ExpectLoss
from chaos.store.baselines import why_incomplete
from chaos.store.directory import RunDirectoryError
from chaos.store.directory import read_run as read_facts

_ANY = ExpectLoss(tolerance=1.0)
"""Any tolerance: with it ranks keep samples."""

_LONGEST = 90

RunCell = Callable[[Prepared, RunOptions], RunOutcome]


@dataclass(frozen=True)
class Interrupted(Exception):
    """Ctrl-C ended a run."""

    run_dir: Path


def fault_free(prepared: Prepared) -> Prepared:
    """Return the cell without its faults, with samples. Its name says what the runs are for."""
    scenario = prepared.scenario.model_copy(
        update={"name": _name_of(prepared.scenario.name), "expect": Expect(loss=_ANY)}
    )
    scenario, plan = without_faults(prepared, scenario)
    return replace(prepared, cell=replace(prepared.cell, scenario=scenario), plan=plan)


def make_runs(prepared: Prepared, count: int, options: RunOptions, run: RunCell) -> list[Recorded]:
    """Run the job ``count`` times and return the records.

    Raises Refused where a run does not reach the last step: a job that fails by itself has no noise to measure.
    """
    job = fault_free(prepared)
    records = []
    for number in range(1, count + 1):
        outcome = run(job, replace(options, number=number, of=count))
        if outcome.interrupted:
            raise Interrupted(outcome.run_dir)
        records.append(read_run(outcome.run_dir))
    return records


def read_run(run_dir: Path) -> Recorded:
    """Return the record of a fault-free run. Raises Refused where it is none, or not whole."""
    why = why_incomplete(run_dir)
    if why is not None:
        raise Refused(f"{run_dir} cannot be measured: {why}")
    return recorded(run_dir.name, read_history(run_dir / "history"), _job_of(run_dir))


def read_given(run_dir: Path, prepared: Prepared) -> Recorded:
    """Return the record of a run that the user names. Raises Refused where it is a run of another job than the cell's.

    The noise of another job would be stated as the noise of this one.
    """
    plan, record = prepared.plan, read_run(run_dir)
    made = io.loads(read_plain(run_dir / "plan.json"))
    expected, recorded_name = plan.identity.scenario, made.identity.scenario
    if recorded_name not in (expected, _name_of(expected)):
        raise Refused(f"{run_dir} is a run of {recorded_name}, not of {expected}")
    for what, ours, theirs in (
        ("ranks", plan.layout.ranks, made.layout.ranks),
        ("steps", plan.training.last_step, made.training.last_step),
        ("replica groups", plan.layout.replica_groups, made.layout.replica_groups),
    ):
        if ours != theirs:
            raise Refused(f"{run_dir} has other {what} than {expected}: {theirs}, not {ours}")
    if changed := list(changes(record.job, record_of(prepared))):
        raise Refused(
            f"{run_dir} was made with another job than {expected} is now (changed since: {', '.join(changed)})"
        )
    return record


def job_of(runs: Sequence[Recorded]) -> dict[str, str]:
    """Return the job with which all these runs were made; empty where one of them does not tell."""
    return dict(runs[0].job) if all(run.job == runs[0].job for run in runs) else {}


def _job_of(run_dir: Path) -> dict[str, str]:
    """Return the job that a run has recorded; empty where it has recorded none."""
    try:
        job = read_facts(run_dir).get(JOB)
    except RunDirectoryError:
        return {}
    return job if isinstance(job, dict) and all(isinstance(value, str) for value in job.values()) else {}


def _name_of(scenario: str) -> str:
    """Return the name of the fault-free runs of a scenario."""
    return f"{scenario[:_LONGEST]}-noise"
