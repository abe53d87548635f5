"""Checking a user's manifest: whether MindCluster will recover this job as the scenario, or the manifest, intends.

Most mistakes in such a file are refused nowhere: a misspelt strategy, a switch without quotes or a label in the wrong
place only leaves the job without its recovery, and a test of it would prove nothing.

Sources are MindCluster's (August 2026): the page on a job's YAML, the pages on resumable training, Ascend Operator's
``env.go`` and ``ascendjob_validate.go``, ClusterD's ``podgroup``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.check.ascendjob import ascendjob_problems
from chaos.platforms.kubernetes.check.commands import command_problems
from chaos.platforms.kubernetes.check.environment import environment_problems
from chaos.platforms.kubernetes.check.framework import FRAMEWORKS, framework_of
from chaos.platforms.kubernetes.check.pods import Template, pod_problems, templates
from chaos.platforms.kubernetes.check.pytorch import pytorch_problems
from chaos.platforms.kubernetes.check.types import as_written, type_problems
from chaos.platforms.kubernetes.check.vcjob import vcjob_problems
from chaos.platforms.kubernetes.documents import Placed, read_manifests
from chaos.platforms.kubernetes.resources import workload_of
from chaos.scenario.errors import Problem, ScenarioError, suggest
from chaos.scenario.models.terms import Strategy

_VALUES = {
    names.PROCESS_RECOVER: ("on", "pause", "off"),
    names.FAULT_SCHEDULING: ("grace", "force", "off"),
    names.POD_RESCHEDULING: ("on", "off"),
    names.SUB_HEALTHY: ("ignore", "graceExit", "forceExit", "hotSwitch"),
}
_WAIT_SECONDS = (30, 270)


@dataclass(frozen=True)
class Demands:
    """The scenario's demands on the manifest; None leaves a value open."""

    strategies: tuple[Strategy, ...] | None = None
    nodes: int | None = None
    ranks: int | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class Checked:
    """The job of a file, the workload that it is submitted as, and every problem."""

    job: Placed
    workload: str
    problems: tuple[Problem, ...]


def check_file(path: Path, demands: Demands | None = None) -> Checked:
    """Check the manifests of a file.

    Raises ScenarioError where the file is not YAML, is a scenario, or holds no job or several.
    """
    documents = read_manifests(path)
    _refuse_scenario(documents)
    jobs = [(document, kind) for document in documents if (kind := workload_of(_head(document))) is not None]
    if len(jobs) != 1:
        kinds = ", ".join(str(document.at("kind").data) for document in documents if document.at("kind")) or "nothing"  # type: ignore[union-attr]
        message = f"the file has {len(jobs)} jobs, and a run submits one; it holds {kinds}"
        hint = "a job is an AscendJob (mindxdl.gitee.com/v1), a Job of batch.volcano.sh/v1alpha1 or one of batch/v1"
        if any(_head(document).get("kind") == "Deployment" for document in documents):
            hint += "; MindCluster also trains in a Deployment, which this harness neither checks nor submits"
        place = jobs[1][0] if jobs else documents[0] if documents else None
        if place is None:
            raise ScenarioError([Problem(str(path), 0, 0, "the file holds no manifest", hint=hint)])
        raise ScenarioError([place.problem(message, hint)])
    job, workload = jobs[0]
    problems = [problem for document in documents for problem in _metadata(document, demands or Demands())]
    problems += _job_problems(job, workload, demands or Demands())
    return Checked(job, workload, tuple(_without_repeats(problems)))


def _without_repeats(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems in the order of their lines; a problem of several pods is one problem, with all its lines."""
    ordered = sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column))
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in ordered:
        alike.setdefault((problem.message, problem.hint), []).append(problem)
    for first, *others in alike.values():
        lines = ", ".join(dict.fromkeys(str(problem.line) for problem in others))
        yield replace(first, message=f"{first.message} (as in line {lines})") if others else first


def _refuse_scenario(documents: Sequence[Placed]) -> None:
    for document in documents:
        version = document.at("chaos")
        if version is not None and document.at("kind") is None:
            hint = (
                "check the job's own manifest with it: chaos kubernetes check job.yaml --scenario scenario.yaml. Where "
                "the harness makes the job, chaos kubernetes manifest scenario.yaml prints what it makes; the scenario "
                "itself is checked by chaos validate"
            )
            raise ScenarioError([version.problem("the file is a scenario, and no manifest of a job's objects", hint)])


def strategies_of(job: Placed) -> tuple[str, ...]:
    """Return the list ``recover-strategy`` as Ascend Operator splits it: at commas, with nothing stripped."""
    value = job.at("metadata", "annotations", names.RECOVER_STRATEGY)
    return tuple(str(value.data).split(",")) if value is not None and value.data is not None else ()


def _head(document: Placed) -> dict[str, object]:
    return {key: value.data for key, value in document.items() if key in ("apiVersion", "kind")}


def _metadata(document: Placed, demands: Demands) -> Iterator[Problem]:
    for part in ("labels", "annotations"):
        mapping = document.at("metadata", part)
        for key, value in mapping.items() if mapping is not None else ():
            if not isinstance(value.data, str):
                kind = "a boolean" if isinstance(value.data, bool) else "no text"
                yield value.problem(
                    f"{part[:-1]} {key} is {kind} ({value.data}), and the cluster accepts text only",
                    f'write it in quotes: {key}: "{as_written(value.data)}"',
                )
    namespace = document.at("metadata", "namespace")
    if demands.namespace is not None and namespace is not None and namespace.data != demands.namespace:
        yield namespace.problem(
            f"the namespace is {namespace.data}, and the scenario's is {demands.namespace}",
            "a run touches the scenario's namespace only (cluster.kubernetes.namespace)",
        )


def _job_problems(job: Placed, workload: str, demands: Demands) -> Iterator[Problem]:
    labels, annotations = job.nearest_value("metadata", "labels"), job.nearest_value("metadata", "annotations")
    yield from _misplaced(job)
    yield from _values(job)
    strategies = strategies_of(job)
    yield from _strategies(job, strategies)
    if workload == "job":
        for key in (names.PROCESS_RECOVER, names.FAULT_SCHEDULING, names.POD_RESCHEDULING):
            if (label := job.at("metadata", "labels", key)) is not None:
                yield label.problem(
                    f"label {key} means nothing on a Job of batch/v1: MindCluster reschedules AscendJobs and vcjobs",
                    "submit an AscendJob, or leave the label out",
                )
        if strategies:
            value = job.nearest_value("metadata", "annotations", names.RECOVER_STRATEGY)
            yield value.problem("recover-strategy means nothing on a Job of batch/v1", "submit an AscendJob")
    else:
        yield from _process_level(job, workload, strategies, labels)
    if demands.strategies is not None and set(demands.strategies) != {strategy.strip() for strategy in strategies}:
        yield annotations.nearest_value(names.RECOVER_STRATEGY).problem(
            f"recover-strategy allows {', '.join(strategies) or 'nothing'}; the scenario expects "
            f"{', '.join(demands.strategies) or 'nothing'} (job.strategies)",
            "write the same in both, or the plan expects a recovery that cannot happen",
        )
    pods = templates(job, workload)
    if workload == "ascendjob":
        yield from ascendjob_problems(job)
        if framework_of(job) is FRAMEWORKS[names.PYTORCH]:
            yield from pytorch_problems(job, pods, strategies)
    elif workload == "vcjob":
        yield from vcjob_problems(job, pods)
    yield from type_problems(pods)
    yield from pod_problems(job, pods)
    yield from environment_problems(pods, [strategy.strip() for strategy in strategies])
    yield from command_problems(pods)
    yield from _size(job, pods, demands)


def _misplaced(job: Placed) -> Iterator[Problem]:
    for key, right, wrong in (
        (names.RECOVER_STRATEGY, "annotations", "labels"),
        (names.WAIT_RESCHEDULE, "annotations", "labels"),
        (names.PROCESS_RECOVER, "labels", "annotations"),
        (names.FAULT_SCHEDULING, "labels", "annotations"),
        (names.POD_RESCHEDULING, "labels", "annotations"),
        (names.FAULT_RETRY_TIMES, "labels", "annotations"),
        (names.SUB_HEALTHY, "labels", "annotations"),
    ):
        if (misplaced := job.at("metadata", wrong, key)) is not None:
            yield misplaced.problem(f"{key} is read from the job's {right} only, and here it is among the {wrong}")
    known = {*_VALUES, names.FAULT_RETRY_TIMES}
    labels = job.at("metadata", "labels")
    for key, value in labels.items() if labels is not None else ():
        suggestion = next((known_key for known_key in known if known_key != key and _same(known_key, key)), None)
        if suggestion is not None:
            yield value.problem(f"no component reads label {key}", f"did you mean '{suggestion}'?")


def _same(name: str, other: str) -> bool:
    return name.casefold().replace("-", "").replace("_", "") == other.casefold().replace("-", "").replace("_", "")


def _values(job: Placed) -> Iterator[Problem]:
    for key, allowed in _VALUES.items():
        value = job.at("metadata", "labels", key)
        if value is not None and isinstance(value.data, str) and value.data not in allowed:
            yield value.problem(
                f"label {key} is {value.data!r}, which MindCluster ignores",
                suggest(value.data, allowed, "values"),
            )
    least, most = _WAIT_SECONDS
    retries, wait = "a whole number, 0 or more,", f"a whole number from {least} to {most}"
    for part, key, known, choices in (
        ("labels", names.FAULT_RETRY_TIMES, lambda _: True, retries),
        ("annotations", names.WAIT_RESCHEDULE, lambda number: least <= number <= most, wait),
    ):
        value = job.at("metadata", part, key)
        if value is None or not isinstance(value.data, str):
            continue
        # Go reads it by Atoi, which takes at most 64 bits.
        whole = value.data.isascii() and value.data.isdecimal() and len(value.data) < 19
        if not (whole and known(int(value.data))):
            yield value.problem(f"{key} is {value.data!r}: it must be {choices}")


def _strategies(job: Placed, strategies: Sequence[str]) -> Iterator[Problem]:
    value = job.at("metadata", "annotations", names.RECOVER_STRATEGY)
    if value is None:
        return
    for strategy in strategies:
        if strategy in names.STRATEGIES:
            continue
        if strategy.strip() in names.STRATEGIES:
            yield value.problem(
                f"strategy {strategy!r} has a blank: Ascend Operator splits at commas, strips nothing and ignores it",
                f'write recover-strategy: "{",".join(part.strip() for part in strategies)}"',
            )
        else:
            yield value.problem(
                f"recover-strategy has {strategy!r}, which Ascend Operator ignores",
                suggest(strategy, names.STRATEGIES, "strategies"),
            )
    framework = job.at("metadata", "labels", names.FRAMEWORK)
    if "elastic-training" in strategies and framework is not None and framework.data == names.MINDSPORE:
        yield value.problem("elastic-training is for PyTorch only: in a job of MindSpore it does nothing")


def _process_level(job: Placed, workload: str, strategies: Sequence[str], labels: Placed) -> Iterator[Problem]:
    used = [name.strip() for name in strategies]
    process_level = [name for name in used if name in names.PROCESS_LEVEL]
    graceful = [name for name in used if name in names.GRACEFUL]
    switch = job.at("metadata", "labels", names.PROCESS_RECOVER)
    strategy = job.nearest_value("metadata", "annotations", names.RECOVER_STRATEGY)
    if used and switch is not None and switch.data in ("off", "pause"):
        yield switch.problem(f"process-level recovery is switched {switch.data}, but recover-strategy needs it")
    if used and workload == "vcjob" and (switch is None or switch.data != "on"):
        yield strategy.problem(
            "Ascend Operator sets process-recover-enable for AscendJobs only; on a vcjob nothing sets it, and "
            "ClusterD ignores every strategy without it",
            'add the label process-recover-enable: "on"',
        )
    if switch is not None and switch.data == "on" and not used:
        yield switch.problem("process-recover-enable is on, but there is no recover-strategy (annotation)")
    scheduling = job.at("metadata", "labels", names.FAULT_SCHEDULING)
    if graceful and (scheduling is None or scheduling.data != "grace"):
        state = "there is none" if scheduling is None else f"it is {scheduling.data!r}"
        yield (scheduling or labels).problem(
            f'{", ".join(graceful)} needs the label fault-scheduling: "grace", and {state}',
        )
    retries = job.at("metadata", "labels", names.FAULT_RETRY_TIMES)
    if process_level and (retries is None or retries.data == "0"):
        yield (retries or labels).problem(
            f"{', '.join(process_level)} needs the label fault-retry-times, larger than 0: without it MindCluster "
            "does not see that a process has ended"
        )
    healthy = job.at("metadata", "labels", names.SUB_HEALTHY)
    if healthy is not None and healthy.data == "graceExit" and "dump" not in used:
        yield healthy.problem("subHealthyStrategy graceExit saves a checkpoint first, which needs the strategy dump")


def _size(job: Placed, pods: Sequence[Template], demands: Demands) -> Iterator[Problem]:
    workers = [template for template in pods if template.trains]
    count = sum(template.replicas for template in workers)
    if demands.nodes is not None and workers and count != demands.nodes:
        yield workers[0].place.problem(
            f"{count} pods train, and the scenario has {demands.nodes} nodes (cluster.nodes)"
        )
    npus = sum(template.replicas * template.npus for template in workers)
    if demands.ranks is not None and npus and npus != demands.ranks:
        yield workers[0].place.problem(f"the pods have {npus} NPUs, and the scenario {demands.ranks} ranks")
