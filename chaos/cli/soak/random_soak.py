"""``chaos soak --random``: the drawn scenarios of a soak, and the results of their runs."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click
import yaml

from chaos.jobs.kind import job_kind
from chaos.run.prepare.needs import chosen_sdk
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.run.prepare.versions import with_timings_of
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.mechanisms import registered
from chaos.soak.recoveries import acting, counts_within_epoch, overwrites_names, propose, recipes, recovers
from chaos.soak.soak import VERDICTS, SoakRun

if TYPE_CHECKING:
    from chaos.scenario.load import Cell, LoadedScenario

_TRIES = 500
"""Proposals for one scenario; so many impossible ones in a row mean that nothing like it is possible."""


@dataclass(frozen=True)
class DrawnScenario:
    """One scenario of a good recovery. ``kind`` is that of its job, ``acting`` the mechanisms that its plan has."""

    loaded: LoadedScenario
    cell: Cell
    kind: str
    acting: str


def draw_scenarios(
    number: int, seed: int, *, kinds: Sequence[str], mechanisms: Sequence[str], directory: Path, sdk: str = "auto"
) -> list[DrawnScenario]:
    """Draw ``number`` scenarios and keep each as a file in ``directory``, to be run again by itself.

    Kinds and mechanisms take turns; unless mechanisms are requested, only those that a kind of job can have. A scenario
    depends on the seed, its number, its kind and mechanism, and the abilities of the requested SDK. Raises
    click.UsageError where none can be drawn, and Refused where that SDK is not there.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for file in (file for kind in kinds for file in job_kind(kind).drawn_files()):
        shutil.copy(file, directory)
    turns = [(kind, mechanism) for mechanism in mechanisms or recipes() for kind in kinds]
    if not mechanisms:
        turns = [turn for turn in turns if _can(*turn)]
    return [_draw(seed, index, *turns[index % len(turns)], directory, sdk) for index in range(number)]


def _can(kind: str, mechanism: str) -> bool:
    """Return whether a kind of job can take part in a recipe's recovery.

    A recipe of no single mechanism is for all kinds.
    """
    traits = job_kind(kind).traits
    known = {switch.name: switch for switch in registered()}
    of_launcher = mechanism in known and known[mechanism].of_launcher
    if of_launcher or traits.vendor is None:
        return of_launcher and traits.launcher_restarts
    able = traits.mechanisms
    return able is None or mechanism not in known or mechanism in able


def _draw(seed: int, index: int, kind: str, mechanism: str, directory: Path, sdk: str) -> DrawnScenario:
    traits = job_kind(kind).traits
    draw = Random(f"{seed}/{index}/{kind}/{mechanism}")
    name = f"random-{kind}-{seed}-{index}"
    path = directory / f"{name}.yaml"
    for _ in range(_TRIES):
        proposal = propose(draw, kind=kind, mechanism=mechanism, variety=traits.starts_fast)
        path.write_text(yaml.safe_dump({"chaos": 1, "name": name, **proposal}, sort_keys=False), "utf-8")
        try:
            loaded = load_scenario(path, names=known_names())
            cell = loaded.cells[0]
            plan = plan_cell(loaded, with_timings_of(chosen_sdk(sdk, cell.scenario), cell))
        except ScenarioError:
            continue
        # A known error of MindSpore (docs/reference/findings.md) is no good recovery.
        if recovers(plan) and not (traits.mindspore and (counts_within_epoch(plan) or overwrites_names(plan))):
            return DrawnScenario(loaded, loaded.cells[0], kind, acting(plan))
    path.unlink()
    raise click.UsageError(f"no good recovery of {mechanism} could be drawn for jobs of kind {kind}")


def summarise(
    drawn: Sequence[DrawnScenario], runs: Sequence[SoakRun], earlier: Sequence[SoakRun], reports: Path
) -> dict[str, Any]:
    """Return the results of the runs: by kind and mechanisms, the machine's load, and why failing runs did not pass.

    ``earlier`` are runs of the same names by other code, which are only counted.
    """
    by_name = {drawn_scenario.loaded.cells[0].scenario.name: drawn_scenario for drawn_scenario in drawn}
    current = [run for run in runs if run.scenario in by_name]
    groups: dict[tuple[str, str], Counter[str]] = {}
    for run in current:
        scenario = by_name[run.scenario]
        groups.setdefault((scenario.kind, scenario.acting), Counter())[run.verdict or "harness failed"] += 1
    loads = [run.load for run in current]
    return {
        "drawn": len(drawn),
        "runs": len(current),
        "verdicts": _counts(current),
        "by_mechanism": [
            {"kind": kind, "acting": acting, "runs": counts.total(), **counts}
            for (kind, acting), counts in sorted(groups.items())
        ],
        "load": {"mean": round(sum(loads) / len(loads), 1), "max": max(loads)} if loads else None,
        "seconds": round(sum(run.seconds for run in current), 1),
        "not_passed": [_why(run, reports) for run in current if run.verdict != "pass"],
        "by_earlier_code": _counts(run for run in earlier if run.scenario in by_name),
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print the summary on a terminal."""
    for row in summary["by_mechanism"]:
        counts = ", ".join(f"{row[name]} {name}" for name in (*VERDICTS, "harness failed") if name in row)
        click.echo(f"{row['runs']:5}  {row['kind']:<10} {row['acting']:<24} {counts}")
    for row in summary["not_passed"]:
        click.echo(f"{row['verdict'] or 'harness failed'}: {row['scenario']} ({row['run']}, load {row['load']})")
        for reason in row["reasons"]:
            click.echo(f"    {reason}")
    load = summary["load"]
    load_text = f"; load average {load['mean']} in the mean, {load['max']} at most" if load else ""
    counts = ", ".join(f"{count} {name}" for name, count in summary["verdicts"].items() if count) or "no run"
    click.echo(f"{summary['runs']} of {summary['drawn']} drawn recoveries: {counts}{load_text}")
    if summary["by_earlier_code"]:
        counts = ", ".join(f"{count} {name}" for name, count in summary["by_earlier_code"].items())
        click.echo(f"recorded by other code, and not counted: {counts}")


def _counts(runs: Iterable[SoakRun]) -> dict[str, int]:
    return dict(Counter(run.verdict or "harness failed" for run in runs))


def _why(run: SoakRun, reports: Path) -> dict[str, Any]:
    reasons = ["there is no result"]
    for name in (run.run or "").split():
        try:
            result = json.loads((reports / name / "result.json").read_bytes())
        except (OSError, ValueError):
            continue
        bad = [check for check in result["checks"] if check["verdict"] != "pass"]
        reasons = [f"{check['verdict']} {check['name']}: {check['expected']} | {check['seen']}" for check in bad[:4]]
    return {"scenario": run.scenario, "verdict": run.verdict, "run": run.run, "load": run.load, "reasons": reasons}
