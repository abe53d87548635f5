"""A small scenario for a kind of fault that can be planned: its requirements, with example values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import yaml

from chaos.base.registry import registry
from chaos.faults.family import Kind
from chaos.faults.kind import FaultKind
from chaos.jobs.kind import job_kinds
from chaos.plan.job_effect import JobEffect
from chaos.plan.recovery.mechanism import PAUSING, ROLLING_BACK
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.kind import platform_kinds

_STEP = 100

_SANE: Mapping[str, float | str] = MappingProxyType(
    {
        "delay": 0.1,
        "factor": 2,
        "kbit": 100_000,
        "latency": 20,
        "megabytes": 64,
        "milliseconds": 20,
        "offset": 3600,
        "percent": 1,
        "seconds": 2,
    }
)
"""Values of required parameters with these names, where they are in the parameter's range."""


def example(kind: FaultKind, rank: int, ranks: int) -> dict[str, Any]:
    """Return a scenario of a job of at least ``ranks`` ranks whose rank ``rank`` is hit, or its node."""
    ranks = max(4, ranks + ranks % 2, rank + 1 + (rank + 1) % 2)
    surface = kind.surface
    platform = next((platform_kind for platform_kind in platform_kinds() if surface in platform_kind.shows), None)
    nodes = 2 if platform or surface == "network" else 1
    cluster: dict[str, Any] = {"platform": platform.name} if platform else {}
    cluster |= ({"nodes": nodes} if nodes > 1 else {}) | {"ranks": ranks}
    if platform is not None and platform.settings is not None and platform.example:
        cluster[platform.settings] = dict(platform.example)
    family_kind = registered(kind.name)
    job = _shown_by(kind.effect.name, surface, "any") | {
        **_needed_by(kind.effect),
        **(family_kind.job if family_kind else {}),
    }
    if "protection" in job:
        job["protection"] = list(job["protection"])
    parameters = _parameters(kind, family_kind.parameters if family_kind else {})
    target: dict[str, Any] = {"rank": rank}
    if platform:
        target = {"node": rank * nodes // ranks}
    if kind.effect.pauses:
        target = {"ranks": list(range(ranks))}
    if family_kind is not None and family_kind.target is not None:
        target = dict(family_kind.target)
    fault: dict[str, Any] = {"kind": kind.name, "target": target, "trigger": {"step": _STEP, "phase": _phase(kind)}}
    faults = [fault | ({"parameters": parameters} if parameters else {})]
    if kind.effect.damages is not None:  # made when its ranks no longer save
        faults[0]["trigger"] = {"after": "power"}
        power = {"kind": "kill", "target": {"ranks": list(range(ranks))}, "trigger": {"step": _STEP}}
        faults.insert(0, {"id": "power", **power})
    scenario: dict[str, Any] = {"chaos": 1, "name": kind.name, "cluster": cluster, "job": job}
    if kind.hazard is not None:
        scenario["allow"] = [kind.name]
    scenario["faults"] = faults
    if kind.effect.alters == "value":
        scenario["expect"] = {"mechanism": "none"}
    return scenario


def written(scenario: Mapping[str, Any]) -> str:
    """Return such a scenario as a file."""
    return str(yaml.safe_dump(dict(scenario), sort_keys=False, default_flow_style=None, width=100))


def needed_place(scenario: Mapping[str, Any]) -> str:
    """Return the required place of such a scenario's job, in words; empty where any host will do."""
    cluster, job = scenario["cluster"], scenario["job"]
    nodes = f"{cluster['nodes']} nodes" if "nodes" in cluster else ""
    where = [f"the platform {cluster['platform']}"] if "platform" in cluster else []
    return " with ".join([*where, *([nodes] if nodes else []), *(["Ascend devices"] if "device" in job else [])])


def _needed_by(effect: JobEffect) -> Mapping[str, Any]:
    """Return the required keys of the job for a fault with this effect."""
    if effect.hangs:
        return {"hccl": {"watchdog": False, "time_scale": 0.01}}
    if effect.alters == "norm":
        return {"protection": ROLLING_BACK, "checkpoint_interval": 20, "tre": {"threshold": 5.0}}
    if effect.pauses:
        return {"protection": PAUSING}
    return {"checkpoint_interval": 20} if effect.takes_saved else {}


def _shown_by(*effects_or_means: str) -> dict[str, Any]:
    """Return a job of the first kind that shows faults of one of these: an effect, or a kind's surface."""
    shown = {what: (job.name, keys) for job in job_kinds() for what, keys in job.examples.items()}
    name, keys = next(shown[what] for what in effects_or_means if what in shown)
    return {"kind": name, "steps": 2 * _STEP, **keys}


def registered(name: str) -> Kind | None:
    """Return a kind's entry in its family; None for a kind that a package registers without a family."""
    kinds = registry("kinds")
    kind: Kind | None = kinds.load(name) if name in kinds.points else None
    return kind


def _parameters(kind: FaultKind, example_parameters: Mapping[str, Any]) -> dict[str, Any]:
    known = kind.parameters or {}
    return dict(example_parameters) | {
        name: _sane(name, parameter) for name, parameter in known.items() if parameter.required
    }


def _sane(name: str, parameter: Parameter) -> Any:
    if parameter.words:
        return parameter.words[0]
    sane = _SANE.get(name, 0.5)
    number = min(max(float(sane), parameter.least), parameter.most)
    return int(number) if parameter.whole or number == int(number) else number


def _phase(kind: FaultKind) -> str:
    if kind.effect.alters == "norm":
        return "allreduce.enter"
    phases = None if kind.required_place is None else kind.required_place.phases
    return phases[0] if phases else "step.begin"
