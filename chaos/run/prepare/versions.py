"""The versions of everything that decides losses and verdicts of a run, and its SDK: the vendor's or the stand-in."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace

from chaos import __version__
from chaos.base.refusal import Refused
from chaos.doctor import has_module
from chaos.jobs.kind import Simulated
from chaos.machine.probe import version_of
from chaos.plan.parts.known_finding import sdk_by
from chaos.scenario.load import Cell


def versions() -> Mapping[str, str]:
    """Return the versions of everything that decides losses and verdicts."""
    installed = {name: version_of(name) for name in ("mindspore", "numpy", "mindformers", "mindio_ttp")}
    return {
        "chaos": __version__,
        "python": platform.python_version(),
        **{name: version for name, version in installed.items() if version is not None},
    }


def choose_sdk(requested: str, *, met_there: bool = False) -> str:
    """Return ``standin`` or ``vendor``. ``auto`` takes the vendor's package where it can be imported here.

    ``met_there``: the ranks run where other packages are installed. Raises Refused where the vendor's package is
    requested and missing.
    """
    there = has_module("mindio_ttp")
    if requested == "vendor" and not there and not met_there:
        raise Refused("--sdk vendor: the vendor's package mindio_ttp is not installed for this Python")
    return "vendor" if requested == "vendor" or (there and requested == "auto") else "standin"


def sdk_named(simulated: Iterable[Simulated]) -> str:
    """Return ``standin`` or ``vendor``: the SDK that the report of such a job names.

    It is the vendor's unless the job kind has put in the stand-in: a job outside a rehearsal has the SDK of the machine
    that it runs on, whatever this machine has.
    """
    return sdk_by((stand_in.part, stand_in.layer) for stand_in in simulated)


def with_timings_of(sdk: str, cell: Cell) -> Cell:
    """Return the cell with the timings of this SDK: the vendor's package has its own, whatever the scenario says."""
    scenario = cell.scenario
    if sdk != "vendor" or scenario.job.timings == "hardware":
        return cell
    job = scenario.job.model_copy(update={"timings": "vendor"})
    return replace(cell, scenario=scenario.model_copy(update={"job": job}))
