"""The output of ``chaos init``: the survey of the job, its guesses, advice about the script, and the next commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from chaos.init.device import CPU
from chaos.init.entries import Draft
from chaos.init.own_launch import OwnLaunch
from chaos.init.resume import is_guarded
from chaos.init.survey import Survey


def survey_lines(survey: Survey) -> Iterator[str]:
    """Yield what the files of the job say, each with its place."""
    if survey.launch is not None:
        ranks = f"{survey.launch.ranks} ranks" if survey.launch.ranks is not None else "an unknown number of ranks"
        yield f"{survey.launch.where}: {survey.launch.launcher} starts {survey.name} on {ranks}"
    loop = survey.loop
    if loop.form == "own":
        yield f"{loop.where}: a training loop of its own"
    elif loop.form:
        yield f"{loop.where}: {loop.form}"
    if loop.steps is not None:
        yield f"{loop.steps.value} steps: {loop.steps.origin}"
    for save in survey.saves:
        every = f" every {save.interval.value} {save.unit.value}s" if save.interval is not None else ""
        every = every.replace("every 1 steps", "every step").replace("every 1 epochs", "every epoch")
        who = f", on rank 0 alone ({save.rank_0})" if save.rank_0 else ""
        yield f"{save.where}: {save.call.name} ({save.form}){every} in {save.place or 'a place that is not read'}{who}"
    for export in survey.exports:
        yield f"{export.save.where}: {export.save.call.name} in {export.save.place}, which no line loads"
    for load in survey.loads:
        yield f"{load.where}: {load.call.name}"
    for option in survey.resumes:
        yield f"{option.option.where}: {option.option.name} looks like the argument of a resume"
    if survey.layout.sharded is not None:
        yield f"{survey.layout.sharded.origin}: the optimizer's state is sharded"
    if survey.layout.stages is not None:
        yield f"{survey.layout.stages.origin}: {survey.layout.stages.value} pipeline stages"


def guess_lines(draft: Draft) -> Iterator[str]:
    """Yield the guesses, by the keys of the scenario."""
    for key, entry in draft.guesses:
        value = " ".join(entry.value) if isinstance(entry.value, tuple) else entry.value
        yield f"{key}: {value} ({entry.why})"


def advice_lines(survey: Survey, draft: Draft) -> Iterator[str]:
    """Yield what the script may have to change, and what the scenario cannot show as it is."""
    yield from survey.left_out
    if not draft.sees_framework:
        imported = f"imports {survey.framework}" if survey.framework else "imports no framework that is known here"
        if draft.launcher is None:
            yield (
                f"{survey.name} {imported}: the job kind {draft.kind} starts it with {draft.kinds_launcher}; name "
                "another launcher by --launch"
            )
        else:
            yield f"{survey.name} {imported}: only the lines of chaos_steps show its steps"
    yield from _loop_advice(survey, draft)
    yield from _checkpoint_advice(survey, draft)
    if draft.resumes and draft.resume_arguments is None:
        yield from _resume_advice(survey)
    for path in survey.paths:
        if not path.option:
            yield (
                f"{path.where}: {path.text!r} is not found in a run, which works in a directory of its own: "
                "make it an argument, or build it from __file__"
            )
    if draft.device.value != CPU:
        yield f"{draft.device.why}: {draft.device.value}, so call chaos run where such a device is"
    if survey.layout.mode in ("semi_auto_parallel", "auto_parallel") and not draft.parallel:
        yield (
            f"{survey.layout.mode_where}: {survey.layout.mode}: if weights are sliced, say the sizes in "
            "cluster.parallel, since ranks without them have to hold equal weights"
        )
    elif not (draft.parallel or survey.layout.averages) and draft.ranks.value > 1:
        yield (
            "no line says that the ranks train the same weights on other data (data parallel), as the scenario says "
            "now: else give --pipeline-stages, --model-parallel or --sharded-optimizer"
        )
    if signs := (*(survey.unseeded if draft.seeded is None else ()), *survey.noise):
        yield "two runs of it may not be equal bit for bit:"
        yield from (f"  {sign}" for sign in signs)
        yield f"  chaos calibrate {draft.name}.yaml measures it, and writes the tolerance"


def launch_lines(own: OwnLaunch | None, draft: Draft) -> Iterator[str]:
    """Yield what is to know about a launcher of the user's own."""
    if own is not None and own.line.restarts and draft.launcher is None and draft.restarts is None:
        why = "that needs a checkpoint every 2 steps or more, which the script finds by itself"
        if draft.resume_arguments is not None:
            why = f"all would start without {' '.join(map(str, draft.resume_arguments.value))}"
        yield f"no restart by {own.line.launcher} is planned: {why}; chaos starts the job again"
    if own is None or draft.launcher is None:
        return
    yield own.numbering
    yield (
        f"chaos puts the command of a rank behind the words of job.command: {own.line.launcher} has to start it for "
        "each rank (docs/guides/launchers.md in the repository)"
    )


def next_lines(file: str) -> Iterator[str]:
    """Yield the next commands."""
    name = shlex.quote(file)
    yield f"chaos plan {name}      # what should happen; starts nothing"
    yield f"chaos run {name}       # trains it without the fault first, then with it"


def _loop_advice(survey: Survey, draft: Draft) -> Iterator[str]:
    loop = survey.loop
    why_not = [*loop.why_not]
    if loop.several_optimizers and draft.step_optimizer is None:
        why_not.append(loop.several_optimizers)
    if "pipeline_stage" in draft.parallel:
        why_not.append(
            "a stage may wait for another before its step is seen, so no fault could hit all of them at once"
        )
    if loop.lines:
        yield "the script reports its steps by chaos_steps"
    elif loop.form == "own" and not why_not:
        yield f"{loop.where}: no line has to be added: chaos finds the steps of such a loop"
    elif loop.form == "own":
        yield f"{loop.where}: chaos may be unable to count the steps: {'; '.join(why_not)}"
        yield "  if chaos run says that no step was seen, add three lines:"
        step = loop.variable or "number"
        yield "    chaos steps > chaos_steps.py"
        yield "    chaos_steps.state_is(network, optimizer)      # before the loop, once"
        yield f"    chaos_steps.step_begins({step}, batch)   # counted from 1 over the whole job"
        yield "    chaos_steps.step_ends(loss)                   # behind the update, before the save"
    elif not loop.form and not survey.saves:
        yield (
            f"{survey.name}: neither Model.train nor a training loop was found; if it trains in a module elsewhere, "
            "that is no harm"
        )


def _checkpoint_advice(survey: Survey, draft: Draft) -> Iterator[str]:
    if not survey.saves and draft.interval is None:
        yield (
            "no save of a checkpoint was found, so the scenario only shows that the job ends; if it saves, say "
            "--checkpoint-interval"
        )
    for save in survey.saves:
        if not save.recorded:
            yield (
                f"{save.where}: {save.call.name} is not recorded by itself: add chaos_steps.saved(path) behind it "
                "(chaos steps prints that file)"
            )
        if save.outside:
            yield (
                f"{save.where}: {save.place} is outside the directory of a run, so the check of checkpoints is "
                "unknown: save below a relative path"
            )
    if draft.interval is not None and not draft.resumes:
        if draft.interval.value >= draft.steps.value:
            yield (
                f"the first checkpoint (step {draft.interval.value}) comes at the end of the training "
                f"({draft.steps.value} steps), so no fault can come between: train longer, or save earlier"
            )
        else:
            yield "the script never loads a checkpoint, so it cannot go on: expect.resume says none"


def _resume_advice(survey: Survey) -> Iterator[str]:
    unknown = [option for option in survey.resumes if option.text is None]
    if unknown:
        yield (
            f"{unknown[0].option.where}: {unknown[0].option.name} looks like the argument of a resume, and its value "
            f"is not known: say --resume-argument {unknown[0].option.name}=VALUE"
        )
        return
    for load in survey.loads[:1]:
        sure = "goes on by itself when a file is there" if is_guarded(load) else "seems to go on without an argument"
        yield f"{load.where}: {sure}; if it needs one, say --resume-argument"
