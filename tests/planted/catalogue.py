"""The jobs with their plants, in the order of the table."""

from __future__ import annotations

from tests.planted.jobs import (
    every_rank_saves,
    gradient_accumulation,
    graph_mode,
    mixed_precision,
    model_train,
    newest_by_content,
    own_loop,
    rank_0_saves,
    safetensors_files,
    sharded_optimizer,
    two_stages,
    with_dropout,
)

_MODULES = (
    model_train,
    rank_0_saves,
    every_rank_saves,
    safetensors_files,
    with_dropout,
    own_loop,
    graph_mode,
    mixed_precision,
    newest_by_content,
    gradient_accumulation,
    sharded_optimizer,
    two_stages,
)

JOBS = {module.JOB.habit: module.JOB for module in _MODULES}
