"""What a kind of job cannot do, refused by name before the start: sizes of parallelism, aids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from chaos.plan.constraints import Violation
from chaos.plan.traits import JobTraits
from chaos.scenario.model import Scenario
from chaos.topology.layout import Layout


def job_violations(scenario: Scenario, layout: Layout, traits: JobTraits) -> Iterator[Violation]:
    """What the scenario asks for and this kind of job does not support. A script of the scenario slices as it likes."""
    kind = f"job kind {scenario.job.kind!r}"
    if traits.most_stages is not None and layout.stages > traits.most_stages:
        yield Violation(
            "cluster.parallel.pipeline_stage",
            f"{kind} does not train in pipeline stages, but pipeline_stage is {layout.stages}",
            text=str(layout.stages),
            hint=f"use pipeline_stage: {traits.most_stages}, or run the scenario on a job kind that has stages",
        )
    yield from _not_done(scenario, traits, kind)
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


def _not_done(scenario: Scenario, traits: JobTraits, kind: str) -> Iterator[Violation]:
    """What of the job the scenario asks for, and this kind does not have."""
    for key, why in traits.lacks.items():
        value: object = reduce(getattr, key.split("."), scenario)
        if value not in (None, False):
            yield Violation(key, f"{kind} {why}", text=str(value), hint=f"leave {key} out, or use another job kind")
