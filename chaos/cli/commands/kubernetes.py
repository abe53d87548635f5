"""``chaos kubernetes``: a job's manifests, checked or made, and the rights that the harness needs in a cluster."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import yaml

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option
from chaos.faults.registered import fault_kind
from chaos.platforms.kubernetes import rbac
from chaos.platforms.kubernetes.check.check import Demands, check_file
from chaos.platforms.kubernetes.own_manifest import own_objects
from chaos.platforms.kubernetes.workload import Named, manifests
from chaos.run.prepare.prepare import known_names
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.kubernetes import Kubernetes
from chaos.scenario.models.scenario import Scenario


@click.group("kubernetes", short_help="Check manifests of a job; print those of a scenario, and the rights needed.")
def command() -> None:
    """Check or make the manifests of a job in a cluster, and print the rights that the harness needs there.

    Nothing is sent to a cluster.

    \b
    Examples:
      chaos kubernetes check job.yaml
      kubectl get acjob NAME -o yaml | chaos kubernetes check -
      chaos kubernetes manifest scenario.yaml
      chaos kubernetes rbac scenario.yaml | kubectl apply -f -
    """


@command.command("check", short_help="Say what in a manifest would hinder a recovery.")
@click.argument("manifest", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--scenario",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare with this scenario: strategies, nodes, ranks and namespace.",
)
@json_option
@debug_option
def check(manifest: Path, scenario: Path | None, as_json: bool) -> int:
    """Print what in a manifest would keep MindCluster from recovering the job.

    MANIFEST is a file, a pipe, or - for standard input. Ends with 64 when there is a problem.
    """
    expected = _expected(_load(scenario)) if scenario is not None else Demands()
    try:
        checked = check_file(manifest, expected)
        problems, workload = checked.problems, checked.workload
    except ScenarioError as error:
        problems, workload = error.problems, None
    if as_json:
        listed = [
            {key: value for key, value in asdict(problem).items() if key not in ("excerpt", "caret")}
            for problem in problems
        ]
        echo_json({"schema_version": 1, "workload": workload, "problems": listed})
    else:
        for problem in problems:
            click.echo(str(problem))
        click.echo(f"{manifest}: {workload or 'no job'}, {len(problems)} problem{'s' * (len(problems) != 1)}")
    return codes.USAGE if problems else codes.PASS


@command.command("manifest", short_help="Print the objects that a scenario's job is made of.")
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@debug_option
def manifest(scenario: Path) -> int:
    """Print the objects that a scenario's job is made of, as they would be sent."""
    loaded = _load(scenario)
    settings = _settings(loaded, scenario)
    named = Named("the-run", "chaos-the-run")
    if settings.manifest is not None:
        _print(own_objects(scenario.parent / settings.manifest, settings, loaded.cluster.nodes, named)[1])
    else:
        _print(manifests(settings, loaded.job, loaded.cluster.nodes, named))
    return codes.PASS


@command.command("rbac", short_help="Print the least rights that a scenario needs.")
@click.argument("scenario", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--account-namespace", metavar="NAME", help="Where the ServiceAccount is made. Default: the job's namespace."
)
@debug_option
def rights(scenario: Path, account_namespace: str | None) -> int:
    """Print the least rights that this scenario needs: a ServiceAccount, Roles, bindings."""
    loaded = _load(scenario)
    _print(rbac.manifests(_settings(loaded, scenario), rights_of(loaded), account_namespace))
    return codes.PASS


def rights_of(scenario: Scenario) -> tuple[rbac.Rule, ...]:
    """Return the actions of a scenario's fault kinds in a cluster, beside the actions of every run."""
    kinds = sorted({fault.kind for fault in scenario.faults})
    return tuple(rule for kind in kinds for rule in fault_kind(kind).rights)


def _load(path: Path) -> Scenario:
    return load_scenario(path, settings={}, names=known_names()).cells[0].scenario


def _settings(scenario: Scenario, path: Path) -> Kubernetes:
    if scenario.cluster.kubernetes is None:
        raise click.UsageError(f"{path} says nothing about a cluster: it has no cluster.kubernetes")
    return scenario.cluster.kubernetes


def _expected(scenario: Scenario) -> Demands:
    cluster = scenario.cluster
    namespace = cluster.kubernetes.namespace if cluster.kubernetes is not None else None
    return Demands(scenario.job.strategies or None, cluster.nodes, cluster.ranks, namespace)


def _print(objects: list[dict[str, Any]]) -> None:
    click.echo(yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, explicit_start=True), nl=False)


class _Plain(yaml.SafeDumper):
    """Writes no anchors: a text that is the same in two places is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
