"""The scenario that follows from a survey: each value with the place that says it, or the guess that it is."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.init.conditions import Unit
from chaos.init.device import ASCEND, CPU, GPU, Device
from chaos.init.entries import Ask, Draft, Entry, Launcher, Wishes
from chaos.init.loops import product
from chaos.init.own_launch import OwnLaunch
from chaos.init.paths import is_input, is_input_directory
from chaos.init.resume import goes_on_by, is_guarded
from chaos.init.survey import Survey
from chaos.init.torch.keys import exports_entry, nodes_entry, python_entry, shard_entries
from chaos.init.values import Value
from chaos.jobs.script_job import ScriptJob

_STEPS = 12
"""Steps of a job of which nothing says how many it trains."""

_LEAST_APART = 2
"""Steps behind a save, at least, of a fault after which the launcher restarts: another rank may still save in the next
step."""

_SHORT = {ASCEND: "NPU", GPU: "GPU"}

_SURE_POINTS = 6
"""Points from which an option is taken for that of the resume without asking."""


def draft(
    survey: Survey,
    wishes: Wishes,
    kind: ScriptJob,
    *,
    here: Collection[str],
    ask: Ask | None,
    own: OwnLaunch | None = None,
) -> Draft:
    """Return the scenario of a job.

    ``kind`` is the job kind of such scripts, ``here`` are the devices of this machine, ``own`` is the user's launcher.
    """
    ranks = _ranks(survey, wishes, ask)
    arguments, chosen = _arguments(survey, wishes, survey.device, here)
    steps, interval = _steps_and_interval(survey, wishes, ranks.value, ask)
    resumes, resume_arguments = _resume(survey, wishes, interval, ask)
    if interval is not None and interval.value >= steps.value:
        resumes = False
    restarts = _restarts(survey, kind, interval) if resumes and resume_arguments is None else None
    own_command = None if own is None or own.is_of_kind(kind.launcher) else _launcher(own)
    parallel = _parallel(survey, wishes, ranks.value)
    open_shard = None
    if kind.traits.shards_state and not parallel and survey.shards is not None:
        parallel, open_shard = shard_entries(survey.shards, ranks.value)
    fault_step = _fault_step(wishes, steps, interval if resumes else None, restarts)
    return Draft(
        name=wishes.name or _name(survey, wishes.fault),
        kind=kind.name,
        sees_framework=survey.framework == kind.framework_need,
        kinds_launcher=kind.launcher,
        script=survey.name,
        ranks=ranks,
        arguments=arguments,
        launcher=own_command,
        device=chosen,
        steps=steps,
        interval=interval,
        savers=_savers(survey, wishes, interval),
        exports=exports_entry(survey.exports),
        resumes=resumes,
        resume_arguments=resume_arguments if resumes else None,
        restarts=restarts,
        parallel=parallel,
        open_shard=open_shard,
        nodes=None if restarts is None else nodes_entry(survey.launch, ranks.value),
        python=python_entry(survey.launch) if kind.traits.own_python and own_command is None else None,
        environment=_environment(survey, str(chosen.value)),
        step_optimizer=_step_optimizer(survey, kind),
        seeded=_seeded(survey, kind),
        fault=wishes.fault,
        fault_step=fault_step,
    )


def _launcher(own: OwnLaunch) -> Launcher:
    variables = None if own.variables is None else Entry(own.variables, own.numbering, guessed=True)
    return Launcher(Entry(own.command, own.line.where), variables)


def _name(survey: Survey, fault: str) -> str:
    """Return the name of the scenario: that of the script and of its fault."""
    own = re.sub(r"[^A-Za-z0-9.-]+", "-", survey.script.stem).strip("-.") or "job"
    return f"{own}-{fault}"[:100]


def _ranks(survey: Survey, wishes: Wishes, ask: Ask | None) -> Entry:
    if wishes.ranks is not None:
        return Entry(wishes.ranks, "--ranks")
    if survey.launch is not None and survey.launch.ranks is not None:
        return Entry(survey.launch.ranks, f"{survey.launch.where}, {survey.launch.launcher}")
    if ask is not None:
        return Entry(_number(ask("How many ranks (worker processes) has the job?", "2"), "ranks"), "your answer")
    return Entry(2, "no launch line says how many", guessed=True)


def _arguments(survey: Survey, wishes: Wishes, device: Device | None, here: Collection[str]) -> tuple[Entry, Entry]:
    """Return the arguments of the script and the device that it trains on."""
    before = ("", *survey.arguments)
    words = [_in_full(word, place, survey.directory) for place, word in zip(before, survey.arguments, strict=False)]
    origin = survey.launch.where if survey.launch is not None else ""
    guessed = bool(survey.launch and [word for word in survey.launch.unknown if word not in ("$@", "$*")])
    chosen = Entry(CPU, "nothing in the script names another") if device is None else Entry(device.name, device.where)
    absent = device is not None and device.name != CPU and device.name not in here
    if device is not None and device.if_there and absent:
        chosen = Entry(CPU, f"{device.where}: this machine has no {_SHORT[device.name]}")
    if wishes.device is not None:
        chosen = Entry(wishes.device, "--device")
    device_name = str(wishes.device or (CPU if absent or device is None else device.name))
    if device is not None and device.option and device.name != device_name:
        words = [word for word in words if not word.startswith(f"{device.option}=")]
        words.append(f"{device.option}={device.spelled(device_name)}")
        why = f" since this machine has no {_SHORT[device.name]}" if wishes.device is None else " by --device"
        origin, guessed = f"{origin}; {device.option}{why}".lstrip("; "), True
        chosen = Entry(device_name, f"{device.option}={device.spelled(device_name)}")
    for path in survey.paths:
        if path.option and not any(word.partition("=")[0] == path.option for word in words):
            words.append(f"{path.option}={survey.directory / path.text}")
            origin, guessed = f"{origin}; {path.where}: a run has a directory of its own".lstrip("; "), True
    return Entry(tuple(words), origin, guessed=guessed), chosen


def _in_full(word: str, before: str, directory: Path) -> str:
    """Return an argument with a path of an existing file in full; ``before`` is the word in front of it."""
    name, equals, text = word.partition("=") if word.startswith("-") else ("", "", word)
    option = name if equals else before if before.startswith("-") and "=" not in before else ""
    read = is_input(text, directory) or is_input_directory(option, text, directory)
    return f"{name}{equals}{(directory / text).resolve()}" if read else word


def _steps_and_interval(survey: Survey, wishes: Wishes, ranks: int, ask: Ask | None) -> tuple[Entry, Entry | None]:
    """Return the steps of the job, and every how many steps it saves; None where it never saves."""
    per_epoch = _steps_per_epoch(survey, ranks)
    steps = _entry(wishes.steps, "--steps", survey.loop.steps or product(survey.loop.epochs, per_epoch))
    own = _interval(survey, per_epoch)
    interval = _entry(wishes.checkpoint_interval, "--checkpoint-interval", own)
    if steps is None and ask is not None:
        guess = str(3 * interval.value if interval is not None else _STEPS)
        steps = Entry(_number(ask("How many steps does each rank train in all?", guess), "steps"), "your answer")
    if steps is None:
        guess_steps = 3 * interval.value if interval is not None else _STEPS
        steps = Entry(guess_steps, "nothing in the script says how many", guessed=True)
    if interval is None and survey.saves:
        guess_interval = max(1, steps.value // 3)
        if ask is not None:
            answer = ask("Every how many steps does it save a checkpoint?", str(guess_interval))
            interval = Entry(_number(answer, "checkpoint interval"), "your answer")
        else:
            interval = Entry(guess_interval, f"{survey.saves[0].where} does not say every how many", guessed=True)
    return steps, interval


def _interval(survey: Survey, per_epoch: Value | None) -> Value | None:
    """Return the interval of the saves in steps, as far as the source tells it."""
    for save in survey.saves:
        number = None if save.interval is None else save.interval.number
        if save.interval is None or number is None:
            continue
        if save.unit is Unit.STEP:
            return save.interval
        if per_epoch is not None and per_epoch.number is not None:
            return Value(number * per_epoch.number, (*save.interval.places, *per_epoch.places))
    return None


def _steps_per_epoch(survey: Survey, ranks: int) -> Value | None:
    """Return the steps of an epoch: as the source says, or all steps by all epochs."""
    loop = survey.loop
    if loop.steps_per_epoch is not None:
        return loop.steps_per_epoch
    if loop.steps is None or loop.epochs is None:
        return None if survey.batches is None else survey.batches.in_epoch(ranks)
    steps, epochs = loop.steps.number, loop.epochs.number
    if steps is None or epochs is None or steps % epochs:
        return None
    return Value(steps // epochs, (*loop.steps.places, *loop.epochs.places))


def _savers(survey: Survey, wishes: Wishes, interval: Entry | None) -> Entry | None:
    if interval is None:
        return None
    if wishes.savers is not None:
        return Entry(wishes.savers, "--savers")
    if survey.saves and not any(save.by_rank for save in survey.saves) and survey.saves[0].names_rank:
        return Entry("every rank", f"{survey.saves[0].where}, {survey.saves[0].place}")
    return None


def _resume(survey: Survey, wishes: Wishes, interval: Entry | None, ask: Ask | None) -> tuple[bool, Entry | None]:
    """Return whether the job can go on from a checkpoint, and the arguments with which it does."""
    if interval is None:
        return False, None
    if wishes.resume_arguments is not None:
        arguments = wishes.resume_arguments
        return True, Entry(arguments, "--resume-argument") if arguments else None
    best = survey.resumes[0] if survey.resumes else None
    if best is not None and goes_on_by(best.option, survey.arguments):
        return True, None
    if best is not None and best.text is not None:
        why = f"{best.option.where}: {best.why}"
        if best.points >= _SURE_POINTS:
            return True, Entry((best.text,), why, guessed=best.option.takes_value and not best.option.is_truth)
        if ask is not None:
            answer = ask("With which further argument does it go on from its checkpoint (none: by itself)?", best.text)
            return True, None if answer.strip() in ("", "none") else Entry((answer.strip(),), "your answer")
        return True, Entry((best.text,), why, guessed=True)
    if not survey.loads:
        return False, None
    if ask is not None and not any(is_guarded(load) for load in survey.loads):
        answer = ask("With which further argument does it go on from its checkpoint (none: by itself)?", "none")
        return True, None if answer.strip() in ("", "none") else Entry((answer.strip(),), "your answer")
    return True, None


def _restarts(survey: Survey, kind: ScriptJob, interval: Entry | None) -> Entry | None:
    """Return how often the kind's own launcher may start all ranks again; None where it starts none.

    A script that saves every step leaves no step in which it is known that no rank still saves.
    """
    launch = survey.launch
    if launch is None or interval is None or interval.value < _LEAST_APART:
        return None
    if launch.launcher != kind.launcher or not launch.restarts:
        return None
    return Entry(launch.restarts, f"{launch.where}, {launch.launcher}")


def _fault_step(wishes: Wishes, steps: Entry, interval: Entry | None, restarts: Entry | None) -> Entry:
    if wishes.fault_step is not None:
        return Entry(wishes.fault_step, "--fault-step")
    if interval is None:
        return Entry(max(1, steps.value // 2), "in the middle")
    every = interval.value
    least = 1 if restarts is None else _LEAST_APART
    step = min(every + max(least, every // 2), steps.value)
    return Entry(step, f"behind the checkpoint of step {every}" + (", before the next" if every > 1 else ""))


def _parallel(survey: Survey, wishes: Wishes, ranks: int) -> dict[str, Entry]:
    """Return the parallel sizes; none where nothing says that there is more than data parallelism."""
    layout = survey.layout
    stages = _entry(wishes.pipeline_stages, "--pipeline-stages", layout.stages)
    model = _entry(wishes.model_parallel, "--model-parallel", None)
    sharded = Entry(True, "--sharded-optimizer") if wishes.sharded_optimizer else None
    if sharded is None and layout.sharded is not None:
        sharded = Entry(True, layout.sharded.origin)
    sizes = {"model_parallel": model, "pipeline_stage": stages}
    chosen = {name: entry for name, entry in sizes.items() if entry is not None and entry.value > 1}
    if sharded is not None:
        chosen["enable_parallel_optimizer"] = sharded
    if sharded is not None and layout.shard_size is not None:
        chosen["optimizer_weight_shard_size"] = Entry(layout.shard_size.number, layout.shard_size.origin)
    if not chosen:
        return {}
    others = (stages.value if stages else 1) * (model.value if model else 1)
    return {"data_parallel": Entry(max(1, ranks // others), "all ranks by the other sizes"), **chosen}


def _step_optimizer(survey: Survey, kind: ScriptJob) -> Entry | None:
    several = survey.loop.several_optimizers
    if not several or not kind.traits.optimizers or survey.framework != kind.framework_need or survey.loop.lines:
        return None
    return Entry(len(survey.loop.optimizers), f"the last of {several}: whose update ends a step?", guessed=True)


def _seeded(survey: Survey, kind: ScriptJob) -> Entry | None:
    """Return that the agent has to seed the script's generators; None where it cannot, or the script does."""
    if not kind.traits.seeds or not survey.unseeded or survey.framework != kind.framework_need:
        return None
    return Entry(True, "no manual_seed in the script: weights and data would differ in every run")


def _environment(survey: Survey, device: str) -> dict[str, Entry]:
    own = survey.launch.environment if survey.launch is not None else {}
    where = survey.launch.where if survey.launch is not None else ""
    entries = {name: Entry(value, where) for name, value in own.items()}
    if device == CPU and "OMP_NUM_THREADS" not in entries:
        entries["OMP_NUM_THREADS"] = Entry("1", "as many threads in every run: sums in the same order")
    return entries


def _entry(wish: int | None, flag: str, value: Value | None) -> Entry | None:
    if wish is not None:
        return Entry(wish, flag)
    return None if value is None or value.number is None else Entry(value.number, value.origin)


def _number(text: str, what: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise Refused(f"{what}: {text.strip()!r} is no whole number above 0")
    return int(text)
