"""Configurations that MindFormers and MindSpore refuse, or silently do not follow.

Each rule is one function. It yields problems with the line of the YAML and the words of the rule's source. Versions are
those with sources that were read: MindFormers 1.3, 1.5, 1.6, 1.7, 1.8, 2.1, and MindSpore 2.10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chaos.jobs.mindformers.case import Case
from chaos.jobs.mindformers.experts import experts_of
from chaos.jobs.mindformers.keys import ALONE, DATA_ONLY, HYBRID, SINKING, SLICED, sinks, watch_of
from chaos.jobs.mindformers.rules_resume import (
    begins_at_the_first_step,
    goes_back_to_what_is_healthy,
    goes_back_to_what_is_saved,
    loads_what_is_named,
    saves_the_optimizer,
)
from chaos.jobs.mindformers.saving import saved_format, saving_of
from chaos.jobs.mindformers.version import MONITOR
from chaos.plan.recovery.mechanism import IN_STEP, NEEDS, PAUSING, ROLLING_BACK
from chaos.plan.recovery.registry import Facts, Names
from chaos.plan.recovery.vendor import DOCUMENT
from chaos.scenario.errors import Problem, quote

STEP_LEVEL = IN_STEP
"""Mechanisms with which MindFormers regards fault tolerance as on (``check_tft_valid``, 1.6 to 2.1)."""

TRAINING = ("train", "finetune")


def problems(case: Case) -> Iterator[Problem]:
    """Yield every broken rule."""
    for rule in RULES:
        yield from rule(case)


def trains(case: Case) -> Iterator[Problem]:
    """Refuse any mode but training: other modes, and a job that only writes its strategy, end early."""
    mode = case.value("run_mode")
    if mode is None:
        yield case.absent("run_mode", "run_mode is missing, so MindFormers starts no training", "set run_mode: train")
    elif mode.data not in TRAINING:
        yield mode.problem(f"run_mode {quote(mode.shown)} trains nothing", f"use one of {', '.join(TRAINING)}")
    only = case.value("only_save_strategy")
    if only is not None and only.data is True:
        yield only.problem("only_save_strategy ends the job before its first step", "override it with false")


def graph(case: Case) -> Iterator[Problem]:
    """Refuse PyNative mode: the mechanisms need graph mode; MindFormers 2.x has another training loop for PyNative."""
    mode = case.value("context.mode")
    by_hand = mode is not None and mode.data in (1, "PYNATIVE_MODE")
    sections = [value for key in ("parallelism", "training") if (value := case.value(key)) is not None]
    telling = [value for value in sections if isinstance(value.data, dict)] + ([mode] if by_hand and mode else [])
    if telling and case.value("runner_config") is None:
        message = (
            f"{telling[0].key} belongs to the PyNative trainer of MindFormers 2.x, whose loop does not go through "
            "Model.train: the agent would see no step of it, so its jobs are not planned by this version"
        )
        hint = "use a configuration with runner_config and parallel_config, or chaos watch and chaos inject on the job"
        yield telling[0].problem(message, hint)
        return
    mechanism = case.first_of((*NEEDS["MindIO"], *ROLLING_BACK))
    if mode is not None and by_hand and mechanism is not None and not case.rehearsed:
        message = f"{mechanism} ({case.written}) works in graph mode only ({DOCUMENT}, constraints and dependencies)"
        yield mode.problem(message, "use context.mode: 0")


def saves_checkpoints(case: Case) -> Iterator[Problem]:
    """Require CheckpointMonitor for all but RSC alone.

    TTP, UCE and ARF need it from 1.5 on; HCCE, TRE and TSP from 1.6 on.
    """
    mechanism = case.first_of((*STEP_LEVEL, *ROLLING_BACK, *PAUSING))
    if mechanism is not None and saving_of(case.typed) is None:
        message = (
            f"{MONITOR} is not among the callbacks, and {mechanism} is on ({case.written}): MindFormers then ends "
        )
        message += "with 'You must set CheckpointMonitor callback for TFT training!' (trainer/base_trainer.py)"
        yield case.absent("callbacks", message, f"add - type: {MONITOR} to callbacks")


def sink_of_steps(case: Case) -> Iterator[Problem]:
    """Refuse a sink of a whole epoch; a general rule of plans limits step-level mechanisms to one step per sink.

    Without sinking the size has no effect on training, but MindFormers checks it all the same if one of these
    mechanisms is on. MindSpore requires the mode to be a bool.
    """
    mode = case.typed.configuration.get(SINKING)
    if mode is not None and not isinstance(mode.data, bool):
        shown = "null, not left out" if mode.data is None else mode.shown
        yield mode.problem(
            f"{SINKING} is {shown}: MindSpore ends with 'The input value must be a bool, but got "
            f"{type(mode.data).__name__}.' (2.10, train/model.py)",
            f"set sink_mode: {bool(mode.data) or mode.data is None}",
        )
    size = case.value("runner_config.sink_size")
    if size is None or not isinstance(size.data, int):
        return
    if sinks(case.typed):
        if size.data < 1:
            message = f"sink_size {size.shown} sinks a whole epoch at once, in which no step can be distinguished"
            yield size.problem(message, "use a sink size of 1 or more")
        return
    mechanism = case.first_of(tuple(STEP_LEVEL))
    if mechanism is not None and size.data != 1:
        yield size.problem(
            f"{mechanism} ({case.written}) needs sink_size 1, also with sink_mode False: MindFormers ends with "
            f"'sink_size should be 1, got {size.shown}' (core/context/validators.py, 1.5 to 2.1)",
            "set sink_size: 1",
        )


_NO_WHOLE_GRAPH = Names(lambda mechanism: mechanism.no_whole_graph)


def compiled_step_by_step(case: Case) -> Iterator[Problem]:
    """Refuse jit level O2 with UCE or ARF: it sinks a whole graph, which MindSpore refuses for these two only."""
    mechanism = case.first_of(tuple(_NO_WHOLE_GRAPH))
    level = case.value("context.jit_config.jit_level", "context.jit_level")
    if mechanism is not None and level is not None and level.data == "O2" and not case.rehearsed:
        yield level.problem(
            f"{mechanism} ({case.written}) is not there with jit level O2: MindSpore ends with 'TFT is not supported "
            "when using jit_level == O2' (2.10, train/model.py)",
            "use O0 or O1",
        )


def watched(case: Case) -> Iterator[Problem]:
    """Require TrainingStateMonitor with a check of the norm: only it raises the error that a rollback answers."""
    mechanism = case.first_of(tuple(ROLLING_BACK))
    if mechanism is None or watch_of(case.typed) is not None:
        return
    on = case.typed.flag("monitor_config.monitor_on")
    nobody = f"{mechanism} is on ({case.written}), but nothing checks the global norm, so it never acts"
    section = "monitor_config.monitor_on" if on is False else "monitor_config"
    if not on:
        yield case.absent(section, f"{nobody}: monitor_config.monitor_on is not true", "set monitor_on: True")
        return
    key = "monitor_config.check_for_global_norm"
    message = f"{nobody}: check_for_global_norm is not true, and health_checkpoint (2.1) has no threshold of its own"
    yield case.absent(key if case.value(key) else section, message, "set check_for_global_norm: True")


def parallel_modes(case: Case) -> Iterator[Problem]:
    """Refuse a mode that does not exist, and optimizer parallelism in a mode without it."""
    mode, sharded = (
        case.typed.configuration.get("parallel.parallel_mode"),
        case.value("parallel.enable_parallel_optimizer"),
    )
    if mode is None or not case.typed.flag("use_parallel"):
        return
    known = isinstance(mode.data, (int, str)) and mode.data in ALONE | DATA_ONLY | SLICED
    if not known:
        yield mode.problem(
            f"there is no parallel_mode {quote(mode.shown or 'null')}: MindFormers ends with 'Invalid parallel mode.' "
            "(core/context/validators.py, 1.5 to 2.1)",
            "use 0 (data), 1 (semi-auto), 2 (auto) or 3 (hybrid)",
        )
        return
    if sharded is None or sharded.data is not True or mode.data in SLICED:
        return
    if mode.data in ALONE | HYBRID or case.job.device == "CPU":
        where = f"in parallel_mode {mode.shown} ({mode.file}:{mode.line})"
        where += " on a CPU" if mode.data not in ALONE | HYBRID else ""
        yield sharded.problem(
            f"MindSpore has no parallel optimizer {where}, and ends the job (2.10, nn/optim/optimizer.py)",
            "set enable_parallel_optimizer: False",
        )
    elif mechanism := case.first_of(tuple(NEEDS["replicas"])):
        yield sharded.problem(
            f"with enable_parallel_optimizer in parallel_mode {mode.shown} ({mode.file}:{mode.line}) each parameter is "
            "updated by one rank alone, so the optimizer's state has one copy (MindSpore 2.10, nn/optim/optimizer.py). "
            f"{mechanism} ({case.written}) needs replicas ({DOCUMENT}, constraints and dependencies)",
            "set enable_parallel_optimizer: False",
        )


def saves_in_the_run(case: Case) -> Iterator[Problem]:
    """Refuse a fixed output directory: the run gives the job its own, and a fixed directory would be shared."""
    saving = saving_of(case.typed)
    directory = None if saving is None else saving.value("directory")
    if directory is not None and directory.data != "":
        yield directory.problem(
            f"checkpoints go to {quote(directory.shown)}, which two runs would share: a run looks for them in its own "
            "output directory",
            "override it with null",
        )


def keeps_a_checkpoint(case: Case) -> Iterator[Problem]:
    """Require at least one kept checkpoint, in either layout (2.1); MindSpore then keeps one."""
    saving = saving_of(case.typed)
    kept = case.value("checkpoint.save_max") if saving is None else saving.value("keep_checkpoint_max")
    if case.release.layout == "section" and kept is not None and isinstance(kept.data, int) and kept.data < 1:
        yield kept.problem(
            f"{kept.key} is {kept.shown}: MindFormers ends with 'save_max in checkpoint_config should be at least 1.' "
            "(trainer/utils.py, 2.1)",
            "keep 1 or more",
        )


def names_of_checkpoints(case: Case) -> Iterator[Problem]:
    """Refuse a prefix with ``rank`` in it, and left-out slices in a format other than safetensors."""
    saving = saving_of(case.typed)
    if saving is None:
        return
    # That of the section `checkpoint` is not looked at.
    prefix = None if case.before(1, 6) else saving.callback.data.get("prefix")
    if prefix is not None and isinstance(prefix.data, str) and "rank" in prefix.data:
        message = "MindFormers ends with 'The prefix for saving checkpoint is not allowed to contain 'rank'.'"
        yield prefix.problem(f"{message} (trainer/trainer.py, 1.6 to 2.1)", "choose another prefix")
    spare = saving.value("remove_redundancy")
    form = saved_format(case.typed.configuration, case.release)
    if form == "ckpt" and spare is not None and spare.data is True:
        yield spare.problem(
            "a checkpoint of the format ckpt, which is the default, is never without redundancy: MindFormers ends with "
            "'The format of checkpoint is ckpt which is not support remove redundancy.' "
            "(trainer/base_trainer.py, 1.5 to 2.1)",
            "set checkpoint_format: safetensors",
        )


def replicas_of_experts(case: Case) -> Iterator[Problem]:
    """Require replicas of dense weights and experts, and a known set of ranks that hold the same experts.

    A general rule of plans covers too few copies of the dense weights.
    """
    mechanism, experts = case.first_of(tuple(NEEDS["replicas"])), experts_of(case)
    if mechanism is None or experts is None or experts.dense < 2:
        return
    needs = (
        f"{mechanism} ({case.written}) needs replicas of dense weights and of experts. Dense weights have "
        f"{experts.dense} copies, which is enough"
    )
    size = experts.size
    if experts.unknown:
        message = f"{needs}; how many each expert has is not planned by this version: {experts.unknown}"
        yield size.problem(message, _FEWER)
    elif all(reading.replicas < 2 for reading in experts.readings):
        why = "; ".join(dict.fromkeys(map(str, experts.readings)))
        yield size.problem(f"{needs}; with {size.key} {size.shown} {why}", _FEWER)
    elif not experts.known:
        each = "; ".join(dict.fromkeys(map(str, experts.readings)))
        message = f"{needs}; with {size.key} {size.shown} it is left open which ranks hold the same experts: {each}"
        yield size.problem(message, experts.hint)


_FEWER = "use a smaller expert_parallel"


def known_to_this_version(case: Case) -> Iterator[Problem]:
    """Refuse mechanisms for which this version has no switch: older versions have fewer of them, or none."""
    for mechanism in case.on:
        since = _SINCE.get(mechanism)
        if since is not None and case.before(*since):
            oldest = ".".join(map(str, since))
            message = (
                f"{case.release.shown} does nothing for {mechanism} ({case.written}), which it knows from {oldest} on"
            )
            yield case.absent("callbacks", message, "take it out of job.protection, or use a newer MindFormers")


_SINCE = Facts(lambda mechanism: mechanism.since)
"""First versions with a ``version_control.py`` that looks for a mechanism's switch."""

RULES: tuple[Callable[[Case], Iterator[Problem]], ...] = (
    trains,
    graph,
    saves_checkpoints,
    sink_of_steps,
    compiled_step_by_step,
    watched,
    begins_at_the_first_step,
    loads_what_is_named,
    goes_back_to_what_is_saved,
    goes_back_to_what_is_healthy,
    saves_the_optimizer,
    parallel_modes,
    saves_in_the_run,
    keeps_a_checkpoint,
    names_of_checkpoints,
    replicas_of_experts,
    known_to_this_version,
)
