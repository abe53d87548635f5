"""Rules about the start and the resume of a job, as far as its configuration decides these.

One function for each rule, as in :mod:`chaos.jobs.mindformers.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.jobs.mindformers.case import Case
from chaos.jobs.mindformers.configuration import is_off
from chaos.jobs.mindformers.saving import Saving, is_new_layout, saved_format, saving_of
from chaos.jobs.mindformers.yaml_file import Value
from chaos.plan.recovery.mechanism import IN_STEP, ROLLING_BACK
from chaos.scenario.errors import Problem, quote


def begins_at_the_first_step(case: Case) -> Iterator[Problem]:
    """Refuse a job that does not begin at step 1: the plan counts steps from there.

    In the new layout of MindFormers 2.1 ``checkpoint.no_load_optim`` decides whether a job goes on, and
    ``resume_training`` only if the former is left out (trainer/utils.py).
    """
    new = case.release.layout == "section" and is_new_layout(case.typed.configuration, case.release)
    load = case.value("checkpoint.load_path", "load_checkpoint") if new else case.value("load_checkpoint")
    if load is None or not load.data:
        return
    anew, resume = case.value("checkpoint.no_load_optim") if new else None, case.value("resume_training")
    if anew is not None:
        switch, hint = None if anew.data else anew, "override checkpoint.no_load_optim with true"
    else:
        switch, hint = resume if resume is not None and resume.data else None, "override resume_training with false"
    if switch is not None:
        yield switch.problem(
            f"the job resumes from the checkpoint {quote(load.shown)} ({load.file}:{load.line}), but this version "
            "plans steps from 1 only",
            hint,
        )


def loads_what_is_named(case: Case) -> Iterator[Problem]:
    """Refuse switches that need a checkpoint if none is named.

    MindFormers then takes ``model.model_config.checkpoint_name_or_path``, or ends. From 2.1 on
    ``resume_training: True`` alone is a fresh start (``_adjust_resume_training_if_ckpt_path_invalid``).
    """
    load = case.value("load_checkpoint")
    if load is not None and load.data:
        return
    resume, transformed = case.value("resume_training"), case.value("auto_trans_ckpt")
    if resume is not None and resume.data and (resume.data is not True or case.before(2, 1)):
        switch = resume
    elif transformed is not None and transformed.data and case.value("pretrained_model_dir") is None:
        switch = transformed
    else:
        return
    yield switch.problem(
        f"{switch.key} is on and load_checkpoint is empty: MindFormers then goes on from "
        "model.model_config.checkpoint_name_or_path, and without one ends with '`load_checkpoint` should not be empty "
        "or None' (trainer/trainer.py, 1.3 to 2.1)",
        f"override {switch.key} with false",
    )


def saves_the_optimizer(case: Case) -> Iterator[Problem]:
    """Refuse a save without the optimizer's state, which the new layout allows: a resume from it loses the state."""
    saving = saving_of(case.typed)
    if saving is None or saving.legacy:
        return
    left_out = None if saving.section is None else case.value("checkpoint.no_save_optim")
    written = saving.callback.data.get("save_optimizer")
    if left_out is None and is_off(written):
        left_out = written
    elif left_out is not None and not left_out.data:
        return
    if left_out is not None:
        yield left_out.problem(
            f"{left_out.key} leaves the optimizer's state out of the checkpoints, and a job that is started again from "
            "one is to go on bit for bit (CheckpointMonitor, 1.8; trainer/utils.py, 2.1)",
            "save it, as by default",
        )


def goes_back_to_what_is_saved(case: Case) -> Iterator[Problem]:
    """Require the saved format in ``load_ckpt_format``: a rollback looks for that format in the legacy layout."""
    saving = saving_of(case.typed)
    mechanism = case.first_of(tuple(ROLLING_BACK))
    if mechanism is None or saving is None or not saving.legacy:
        return
    saved, form = saved_format(case.typed.configuration, case.release), case.typed.text("load_ckpt_format") or "ckpt"
    if saved != form:
        yield _format_at(case, saving).problem(
            f"{mechanism} ({case.written}) goes back to a checkpoint of load_ckpt_format, which is {form}, but the job "
            f"saves {saved} (MindFormers 1.6 to 2.1, trainer/base_trainer.py)",
            f"set load_ckpt_format: {saved}",
        )


def _format_at(case: Case, saving: Saving) -> Value:
    """Return the key of the format, of two keys that differ and of which one may be left out."""
    model = case.typed.configuration.get("use_legacy")
    written = case.value("load_ckpt_format") or saving.callback.data.get("checkpoint_format")
    return written or (model if model is not None and is_off(model) else saving.callback)


def unplanned_resumes(case: Case) -> Iterator[Problem]:
    """Yield settings that make a resume take another checkpoint than the newest recorded one of all ranks.

    In the legacy layout they count if no strategy chooses the files: with a mechanism on, only without
    redundancy (1.2 to 2.1, trainer/trainer.py).
    """
    saving = saving_of(case.typed)
    if saving is None:
        return
    late, spare = case.value("resume_by_last_timestamp_ckpt"), case.value("remove_redundancy")
    if saving.legacy and case.first_of(tuple(IN_STEP)) is not None and not (spare is not None and spare.data):
        return
    if saving.legacy and late is not None and late.data and not case.before(1, 2):
        yield late.problem(
            "each rank then goes on from its own file with the latest time, whatever is recorded, and the plan of this "
            "version goes by the records (MindFormers, tools/resume_ckpt.py)",
            "override resume_by_last_timestamp_ckpt with false",
        )
    healthy = _marks_health(case, saving)
    if healthy is not None:
        yield _by_health(healthy, "a resume")


def goes_back_to_what_is_healthy(case: Case) -> Iterator[Problem]:
    """Require marks of healthy checkpoints: in the new layout of 2.1 a rollback takes the newest marked checkpoint."""
    saving = saving_of(case.typed)
    mechanism = case.first_of(tuple(ROLLING_BACK))
    if mechanism is None or saving is None or saving.legacy:
        return
    healthy = _marks_health(case, saving)
    if healthy is not None:
        yield _by_health(healthy, f"the rollback of {mechanism} ({case.written})")


def _marks_health(case: Case, saving: Saving) -> Value | None:
    """Return the switch that marks checkpoints as healthy or not, by the local norm of the embedding.

    In the legacy layout it is the key at the top (1.6 to 2.1); in the new layout of 2.1 a threshold, which the key
    at the top sets, too (trainer/trainer.py, ``_convert_health_checkpoint_config``).
    """
    switch, threshold = case.value("use_checkpoint_health_monitor"), None
    if case.before(1, 6) or (not saving.legacy and case.release.layout != "section"):
        return None
    if not saving.legacy:
        threshold = case.value("monitor_config.health_checkpoint.embedding_local_norm_threshold")
    return next((value for value in (threshold, switch) if value is not None and value.data), None)


def _by_health(switch: Value, what: str) -> Problem:
    return switch.problem(
        f"{what} then goes on from the newest checkpoint that MindFormers has marked as healthy, by the local norm of "
        "the embedding, which is not known beforehand: not planned by this version (core/callback/callback.py, "
        "checkpoint/utils.py, tools/resume_ckpt.py, 1.6 to 2.1)",
        f"override {switch.key} with null",
    )
