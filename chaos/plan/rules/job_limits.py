"""Limits of a job kind, refused before the start: sizes of parallelism, mechanisms, recovery options."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from chaos.plan.describe import count
from chaos.plan.rules.constraints import Violation
from chaos.plan.topology.layout import Layout
from chaos.plan.traits import JobTraits
from chaos.scenario.models.job import Job
from chaos.scenario.models.mechanisms import mechanism_names
from chaos.scenario.models.scenario import Scenario

_BY_PATH = {"path": "", "callback": ", or let the agent come by PYTHONPATH (job.loading: path)"}


def spoken_kind(job: Job) -> str:
    """Return the kind of a job in words, with the way its agent comes in where that makes a difference."""
    return f"job kind {job.kind!r}{'' if job.loading == 'path' else ', with its agent as a callback,'}"


def job_violations(scenario: Scenario, layout: Layout, traits: JobTraits) -> Iterator[Violation]:
    """Yield the scenario's demands that this kind of job does not support.

    A script of the scenario slices as it likes.
    """
    kind = spoken_kind(scenario.job)
    if traits.most_ranks is not None and layout.ranks > traits.most_ranks:
        yield Violation(
            "cluster.ranks",
            f"{kind} trains on {count(traits.most_ranks, 'rank')} at most, and there are {layout.ranks}",
            text=str(layout.ranks),
            hint=f"use ranks: {traits.most_ranks}{_BY_PATH[scenario.job.loading]}",
        )
    if traits.most_stages is not None and layout.stages > traits.most_stages:
        trains = "does not train in pipeline stages"
        if traits.most_stages > 1:
            trains = f"trains in {traits.most_stages} pipeline stages at most"
        yield Violation(
            "cluster.parallel.pipeline_stage",
            f"{kind} {trains}, but pipeline_stage is {layout.stages}",
            text=str(layout.stages),
            hint=f"use pipeline_stage: {traits.most_stages}, or run the scenario on a job kind that has stages",
        )
    if scenario.job.loading not in traits.loading:
        yield Violation(
            "job.loading",
            f"{kind} registers no callbacks of its own, so the agent comes by PYTHONPATH only",
            text=scenario.job.loading,
            hint="leave it out, or use the job kind mindformers",
        )
    if scenario.job.command is not None and (not traits.own_launcher or scenario.job.agent):
        why = "a launcher of its own starts its ranks"
        if traits.own_launcher:
            why = "job.agent needs the job kind's own launcher, which hands its ranks over to the cluster agent"
        yield Violation(
            "job.command",
            f"{kind} takes no other launcher: {why}" if not traits.own_launcher else why,
            text=" ".join(scenario.job.command)[:80],
            hint="leave job.command out, or use the job kind mindspore, torch or plain without job.agent",
        )
    yield from _not_done(scenario, traits, kind)
    yield from _shards(layout, traits, kind)
    if scenario.job.script is None and not traits.own_script:
        yield Violation("job.script", f"{kind} has no script of its own", hint="name yours: job.script")
    yield from _savers(scenario, kind)
    if scenario.job.script is not None:
        return
    for key, size, known in (
        ("model_parallel", layout.model, traits.slices),
        ("optimizer_weight_shard_size", layout.shards, traits.shards),
    ):
        if known is not None and size not in known:
            sizes = ", ".join(map(str, sorted(known)))
            yield Violation(
                f"cluster.parallel.{key}",
                f"the script of {kind} cannot slice its weights by {key} {size}",
                text=str(size),
                hint=f"use one of {sizes}, or name a script of your own (job.script)",
            )


def _shards(layout: Layout, traits: JobTraits, kind: str) -> Iterator[Violation]:
    """Yield shards of PyTorch's state in a job of another framework."""
    if layout.shard != "none" and not traits.shards_state:
        yield Violation(
            "cluster.parallel.shard",
            f"{kind} does not train with PyTorch, whose shards of the state these are",
            text=layout.shard,
            hint="leave shard out, or use the job kind torch; MindSpore's key is enable_parallel_optimizer",
        )


def _savers(scenario: Scenario, kind: str) -> Iterator[Violation]:
    """Yield a statement about the savers of periodic checkpoints that has no effect, or that this job contradicts."""
    job = scenario.job
    if job.savers is None:
        return
    if job.checkpoint_interval is None:
        yield Violation(
            "job.savers",
            "job.savers has no effect: the scenario has no periodic checkpoints",
            text=job.savers,
            hint="say every how many steps the job saves (job.checkpoint_interval), or leave job.savers out",
        )
    elif job.script is None and job.savers != "every rank":
        yield Violation(
            "job.savers",
            f"every rank of {kind} saves its own checkpoints",
            text=job.savers,
            hint="leave job.savers out, or name a script of your own (job.script)",
        )


def _not_done(scenario: Scenario, traits: JobTraits, kind: str) -> Iterator[Violation]:
    """Yield the mechanisms and recovery options that the scenario asks for and this kind of job lacks."""
    for mechanism in scenario.job.protection:
        if traits.mechanisms is not None and mechanism not in traits.mechanisms:
            known = ", ".join(candidate for candidate in mechanism_names() if candidate in traits.mechanisms)
            knows = f"it knows {known}; run the scenario on another job kind"
            yield Violation(
                "job.protection",
                f"{kind} does not take part in {mechanism}",
                text=mechanism,
                hint=knows if known else f"leave job.protection empty{_BY_PATH[scenario.job.loading]}",
            )
    for key, why in traits.lacks.items():
        value: object = reduce(getattr, key.split("."), scenario)
        if value not in (None, False):
            yield Violation(key, f"{kind} {why}", text=str(value), hint=f"leave {key} out, or use another job kind")
