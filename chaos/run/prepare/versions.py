"""What a run is made with: the versions of everything that decides about losses and verdicts, and whose SDK it is."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace

from chaos import __version__
from chaos.base.refusal import Refused
from chaos.doctor import has_module
from chaos.jobs.kind import Simulated
from chaos.machine.probe import version_of
from chaos.scenario.load import Cell


def versions() -> Mapping[str, str]:
    """Versions of everything that decides about losses and verdicts."""
    installed = {name: version_of(name) for name in ("mindspore", "numpy", "mindformers", "mindio_ttp")}
    return {
        "chaos": __version__,
        "python": platform.python_version(),
        **{name: version for name, version in installed.items() if version is not None},
    }


def choose_sdk(wanted: str, *, met_there: bool = False) -> str:
    """``standin`` or ``vendor``. ``auto`` takes the vendor's package where it can be imported here.

    ``met_there``: the ranks run where other packages are than here. Raises Refused where it is wanted and not there.
    """
    there = has_module("mindio_ttp")
    if wanted == "vendor" and not there and not met_there:
        raise Refused("--sdk vendor: the vendor's package mindio_ttp is not installed for this Python")
    return "vendor" if wanted == "vendor" or (there and wanted == "auto") else "standin"


def sdk_named(simulated: Iterable[Simulated]) -> str:
    """``standin`` or ``vendor``: which of the two the report of such a job names.

    It is the vendor's unless the job kind has put in the stand-in: a job that is none of a rehearsal has the SDK of the
    machine that it runs on, whatever this one has.
    """
    return (
        "standin"
        if any(stand_in.layer == "SDK" and stand_in.part.startswith("mindio_ttp") for stand_in in simulated)
        else "vendor"
    )


def with_timings_of(sdk: str, cell: Cell) -> Cell:
    """The cell with the timings that this SDK has: the vendor's package has its own, whatever the scenario says."""
    scenario = cell.scenario
    if sdk != "vendor" or scenario.job.timings == "hardware":
        return cell
    job = scenario.job.model_copy(update={"timings": "vendor"})
    return replace(cell, scenario=scenario.model_copy(update={"job": job}))
