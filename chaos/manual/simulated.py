"""docs/reference/simulated.md: the parts of the shipped scenarios that are not genuine, as their job kinds say."""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import EntryPoint
from pathlib import Path

from chaos.base.families import Member
from chaos.jobs.kind import JobKind, job_kind
from chaos.manual.prose import cell, markdown, own_points
from chaos.manual.shipped import shipped_scenarios, some
from chaos.scenario.models.scenario import Scenario

_HEAD = """\
# What is simulated

Made by `python -m chaos.manual` from the job kinds and the shipped scenarios. Do not edit.

Every result lists its simulated parts with their layers (`simulated`).

| layer | simulated |
|---|---|
| job | parts that the training script replaces itself |
| framework | a part of MindSpore or MindFormers |
| kernels | operators that MindSpore lacks on a CPU |
| device layer | functions below MindSpore's fault tolerance, which call an NPU on Ascend |
| SDK | MindIO TFT (`mindio_ttp`) or MindIO ACP |
| cluster agent | MindCluster's taskd and its commander |
| scheduler | Slurm, Kubernetes or torchrun, which start torchft's replica groups |
| platform | hosts and networks |
| file system | storage of checkpoints |

Nothing has been run on Ascend hardware yet. A part with † is genuine with `--sdk vendor`.
"""


def simulated_page(scenarios: Path) -> str:
    """Return the page. ``scenarios`` is the directory of the shipped scenarios."""
    loaded = shipped_scenarios(scenarios)
    points = [point for point in own_points("jobs") if not point.name.startswith("defective-")]
    sections = {point.name: _section(point, loaded) for point in points}
    genuine = ", ".join(f"`{name}`" for name, section in sections.items() if not section)
    shown = [section for section in sections.values() if section]
    return "\n".join([_HEAD, *shown, f"The other job kinds have no stand-ins: {genuine}."]) + "\n"


def _section(point: EntryPoint | Member, loaded: dict[str, list[Scenario]]) -> str:
    """Return the section of a job kind; empty if its shipped scenarios have no stand-in."""
    kind = job_kind(point.name)
    scenarios = {name: cells for name, cells in loaded.items() if cells[0].job.kind == point.name}
    lines = [f"## Job kind {point.name}", "", markdown(type(kind).__doc__), ""]
    standin, vendor = _parts(kind, scenarios, "standin"), _parts(kind, scenarios, "vendor")
    if not standin:
        return ""
    lines += ["| layer | simulated | in |", "|---|---|---|"]
    previous = ""
    for (layer, part), names in sorted(standin.items()):
        mark = "" if (layer, part) in vendor else "†"
        shown = "" if layer == previous else f" {layer}"
        lines.append(f"|{shown} | {cell(part)}{mark} | {_where(names, set(scenarios))} |")
        previous = layer
    return "\n".join([*lines, ""])


def _where(names: set[str], scenarios: set[str]) -> str:
    """Return the words for the scenarios in which a part is simulated."""
    others = scenarios - names
    if not others:
        return "all"
    return f"all but {some(others)}" if len(others) == 1 < len(names) else some(names)


def _parts(kind: JobKind, scenarios: dict[str, list[Scenario]], sdk: str) -> dict[tuple[str, str], set[str]]:
    """Return the scenarios with each simulated part in one of their cells, by layer and part."""
    scenarios_by_part: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, cells in scenarios.items():
        for scenario in cells:
            for part in kind.simulated(scenario, sdk):
                scenarios_by_part[part.layer, part.part].add(name)
    return scenarios_by_part
