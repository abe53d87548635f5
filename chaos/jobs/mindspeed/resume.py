"""Whether a job of Megatron that is started again goes on from its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.jobs.mindspeed.arguments import Arguments
from chaos.jobs.mindspeed.case import Case
from chaos.scenario.errors import Problem

_FORGETS = {
    "--finetune": "counts its steps from 0 and loads no optimizer",
    "--no-load-optim": "loads no optimizer",
    "--no-load-rng": "loads no state of the random numbers",
}


def resume_problems(case: Case) -> Iterator[Problem]:
    """Yield why the second start would not go on where the first one ended."""
    job = case.scenario.job
    if not (job.resume and case.scenario.faults) or (save := case.arguments.get("--save")) is None:
        return
    again = Arguments((*job.arguments, *job.resume_arguments))
    load = again.get("--load")
    if load is None:
        yield case.of(
            save,
            "the job saves checkpoints and loads none (--load), so started again it begins anew",
            f"add --load {save.value or ''} to job.arguments, or set job.resume: false",
        )
    elif load.value != save.value:
        yield case.of(
            save,
            f"the job saves in {save.value} and loads from {load.value}, so started again it misses what it saved",
            f"add --load {save.value or ''} to job.resume_arguments, or set job.resume: false",
        )
    for name, what in _FORGETS.items():
        if load is not None and (argument := again.get(name)) is not None:
            where = job.arguments if argument.index < len(job.arguments) else job.resume_arguments
            path = argument.path if where is job.arguments else "job.resume_arguments"
            yield case.at(
                path,
                f"{name}: a job that is started again {what}, so its losses cannot be those of a job without a fault",
                "leave it out, or set job.resume: false",
                text=name,
            )
