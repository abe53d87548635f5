"""What a kind of job cannot train: sizes of parallelism that it does not know, refused by name before the start."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.plan.constraints import Violation
from chaos.plan.traits import JobTraits
from chaos.scenario.model import Scenario
from chaos.topology.layout import Layout


def job_violations(scenario: Scenario, layout: Layout, traits: JobTraits) -> Iterator[Violation]:
    """Sizes of the layout that this kind of job does not support. A script of the scenario slices as it likes."""
    kind = f"job kind {scenario.job.kind!r}"
    if traits.most_stages is not None and layout.stages > traits.most_stages:
        yield Violation(
            "cluster.parallel.pipeline_stage",
            f"{kind} does not train in pipeline stages, but pipeline_stage is {layout.stages}",
            text=str(layout.stages),
            hint=f"use pipeline_stage: {traits.most_stages}, or run the scenario on a job kind that has stages",
        )
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
