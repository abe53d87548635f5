"""The job with which a tolerance was measured: what decides about its noise, and what has changed since.

``chaos calibrate`` writes it into ``expect.loss.measured``. A tolerance written by hand has no such record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos.base.refusal import Refused
from chaos.jobs.inputs import BY_SIZE_AND_TIME
from chaos.jobs.kind import JobError, JobKind
from chaos.run.prepare.prepared import Prepared
from chaos.run.prepare.versions import versions
from chaos.scenario.models.parallel import effective_parallel
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Model
from chaos.store.baseline_key import NO_MATTER

JOB = "job"
"""The key of the record in run.json."""

SCRIPT, FILES, RANKS, PARALLEL = "job.script", "files", "cluster.ranks", "cluster.parallel"
_RELEASES = ("mindspore", "numpy", "mindformers")
_ALWAYS_USED = "numpy"
_ENVIRONMENT = "environment "

_OTHERWISE = NO_MATTER | {"script", "config", "checkout", "steps_per_update", "digest_interval"}
"""Keys of the job that are no part of the record: they change no noise, or name files that count by content."""

_BY_RANKS = ("data_parallel",)
"""The size that follows from the ranks and the other sizes."""

_DIGITS = 12


def job_record(
    kind: JobKind, scenario: Scenario, inputs: Mapping[str, str], releases: Mapping[str, str]
) -> dict[str, str]:
    """Return the record of a job: digests of its script, other files and keys, its ranks, and its libraries' releases.

    ``inputs`` is the fingerprint of the job's files. Sizes and times of data, and variables of the caller's shell, are
    left out: they differ between two machines with the same job. Keys that keep their default are left out, too.
    """
    script = f"script {Path(scenario.job.script).name}" if scenario.job.script else ""
    files = {
        _portable(name): value
        for name, value in inputs.items()
        if not name.startswith((BY_SIZE_AND_TIME, _ENVIRONMENT)) and name != script
    }
    needed = {*kind.needs_for(scenario), _ALWAYS_USED}
    return {
        **({SCRIPT: _digest(inputs[script])} if script in inputs else {}),
        **({FILES: _digest(files)} if files else {}),
        **{f"job.{name}": _digest(value) for name, value in _written(scenario.job, _OTHERWISE).items()},
        RANKS: str(scenario.cluster.ranks),
        **({PARALLEL: _digest(sizes)} if (sizes := _written(effective_parallel(scenario.cluster), _BY_RANKS)) else {}),
        **{name: releases[name] for name in _RELEASES if name in needed and name in releases},
    }


def record_of(prepared: Prepared) -> dict[str, str]:
    """Return the record of a cell's job."""
    return job_record(prepared.registered.job, prepared.scenario, prepared.inputs.begun, versions())


def changes_since(kind: JobKind, scenario: Scenario, directory: Path) -> Iterator[str]:
    """Yield what has changed since the limits of a scenario in ``directory`` were measured; nothing without a record.

    Raises Refused where a file of the job cannot be read.
    """
    measured = scenario.expect.loss.measured if scenario.expect.loss is not None else {}
    if not measured:
        return
    try:
        inputs = kind.fingerprint(scenario, directory)
    except JobError as error:
        raise Refused(str(error)) from error
    yield from changes(measured, job_record(kind, scenario, inputs, versions()))


def changes(measured: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield what has changed since a record was made, in words. Nothing where there is no record."""
    for name in [*now, *(name for name in measured if name not in now)] if measured else ():
        before, after = measured.get(name), now.get(name)
        if before == after:
            continue
        if name == SCRIPT:
            yield "the script"
        elif name == FILES:
            yield "another file of the job"
        elif name in (RANKS, *_RELEASES):
            yield f"{name} from {before or 'none'} to {after or 'none'}"
        else:
            yield name


def _written(part: Model, left_out: Collection[str]) -> dict[str, Any]:
    """Return the keys of a part of the scenario that have another value than the default, but for those left out."""
    return part.model_dump(mode="json", exclude=set(left_out), exclude_defaults=True)


def _portable(name: str) -> str:
    """Return the name of an input without the directories of this machine."""
    what, _, path = name.partition(" ")
    return f"{what} {Path(path).name}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]
