"""The needs of a scenario before it can run: names of probes (:data:`chaos.doctor.PROBES`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chaos.doctor import BASE, INTERFACE, OWN_AGENT, needs_of
from chaos.plan.recovery.mechanism import NEEDS, REPLACING, switched_on
from chaos.platforms.remote_requirements import MODULES
from chaos.run.prepare.registered import Registered, look_up_names
from chaos.run.prepare.versions import choose_sdk
from chaos.scenario.models.scenario import Scenario


def chosen_sdk(requested: str, scenario: Scenario, registered: Registered | None = None) -> str:
    """Return ``standin`` or ``vendor``: the SDK of the run. Raises Refused where the vendor's is missing.

    Machines that bring their own packages are asked when they are there.
    """
    registered = registered or look_up_names(scenario)
    return choose_sdk(requested, met_there="mindio_ttp" in registered.platform.met(scenario))


def needs_mindio(scenario: Scenario) -> bool:
    """Return whether a mechanism that the job has switched on is the SDK's."""
    return bool(set(switched_on(scenario.job.protection)) & NEEDS["MindIO"].keys())


def needs_of_job(
    scenario: Scenario, sdk: str = "standin", registered: Registered | None = None, beside: Path | None = None
) -> tuple[str, ...]:
    """Return the needs of the ranks, where they run; ``sdk`` is the chosen one.

    With ``beside``, the scenario's directory, files of the job there can show that it needs less.
    """
    kind = (registered or look_up_names(scenario)).job
    needs = kind.needs_for(scenario) if beside is None else kind.needs_beside(scenario, beside)
    # Only a rehearsal brings a stand-in: a genuine job without the package has no mechanism, and says so late.
    vendors = sdk == "vendor" or (kind.traits.genuine and "mindspore" in needs)
    return (*needs, *(("mindio_ttp",) if vendors and needs_mindio(scenario) else ()))


def needs_of_scenario(
    scenario: Scenario, registered: Registered | None = None, beside: Path | None = None
) -> tuple[str, ...]:
    """Return the needs of this machine: for the job, the platform and the faults, without its other machines' needs.

    ``beside`` is that of :func:`needs_of_job`.
    """
    registered = registered or look_up_names(scenario)
    device = ("npu",) if scenario.job.device == "Ascend" else ()
    of_platform = (*BASE, *registered.platform.needed(scenario))
    needs = (
        *needs_of_job(scenario, registered=registered, beside=beside),
        *of_platform,
        *needs_of(*registered.kinds.values()),
        *device,
    )
    met = registered.platform.met(scenario)
    needs = tuple(need for need in needs if need not in met)
    if "mindspore" not in needs or not needs_mindio(scenario):
        return needs
    # Without the cluster's agent MindSpore itself answers the SDK's controller about lost ranks.
    asks = (OWN_AGENT,) if not scenario.job.agent and not REPLACING.isdisjoint(scenario.job.protection) else ()
    return tuple(dict.fromkeys((*needs, INTERFACE, *asks)))


def unknown_releases(
    scenario: Scenario,
    versions: Mapping[str, str],
    sdk: str = "standin",
    registered: Registered | None = None,
    beside: Path | None = None,
) -> list[str]:
    """Return the packages that ranks use on other machines and whose release ``versions``, of this machine, lack."""
    registered = registered or look_up_names(scenario)
    met = registered.platform.met(scenario)
    needed = needs_of_job(scenario, sdk, registered, beside)
    return sorted({need for need in needed if need in MODULES and need in met} - versions.keys())
