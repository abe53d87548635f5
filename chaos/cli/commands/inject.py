"""``chaos inject``: one fault in a running job."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from chaos.cli import codes, completion
from chaos.cli.debug import Settings, debug_option
from chaos.cli.inject_view import of_ranks, report, show
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import echo_json, job_option, json_option, reports_option, settings_option

if TYPE_CHECKING:
    from chaos.attach.outcome import Injected
    from chaos.faults.kind import FaultKind
    from chaos.machine.running.adopted import AdoptedJob
    from chaos.machine.running.running import JobProcess, RunningJob


_SECONDS = "seconds"
"""The parameter of kinds that last: how long. On the command line it is --for, with a unit."""


@click.command("inject", short_help="Make one fault in a job that runs already.")
@click.argument("kind", metavar="KIND", shell_complete=completion.kinds)
@job_option
@click.option("--rank", "ranks", type=click.IntRange(min=0), multiple=True, required=True, help="Repeat it for more.")
@click.option("--for", "duration", metavar="TIME", help="How long the fault lasts: 10s, 2m. Default: until Ctrl-C.")
@settings_option("A parameter of the fault: cores=0.5", shell_complete=completion.parameters)
@click.option("--dry-run", is_flag=True, help="Show what would be hit, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation on a terminal.")
@reports_option
@json_option
@debug_option
def command(
    kind: str,
    name: str,
    ranks: tuple[int, ...],
    duration: str | None,
    settings: dict[str, str],
    dry_run: bool,
    yes: bool,
    reports: Path,
    as_json: bool,
) -> int:
    """Make one fault in ranks of a job that runs already on this host, also in a container, and prove that it landed.

    KIND is a fault that needs nothing from the job's start: kill, suspend, terminate, freeze, cpu-load, cpu-quota,
    fd-limit, memory-load, connection-reset, or damage to a checkpoint (truncate-, flip-, partial-, stale-, remove- or
    rename-checkpoint; the newest, or that of --set step=N); others say what they need. Only the ranks that are named
    are hit, by PID and start time, and only files and connections of their own. The fault is undone at the end, and
    the job goes on. What was done is recorded in the reports directory, how to undo it before it is done: `chaos heal`
    does that if this command is killed. On a terminal it asks first.

    \b
    Examples:
      chaos inject kill --rank 3 --job output/msrun_log --dry-run
      chaos inject suspend --rank 0 --rank 1 --job 4711 --for 30s
      chaos inject cpu-quota --rank 2 --job 4711 --set cores=0.5 --for 1m
      chaos inject truncate-checkpoint --rank 0 --job output/msrun_log --dry-run

    \b
    Exit codes: 0 landed and undone, 2 not landed or unknown, 3 not undone or the
    harness failed, 64 nothing was done (bad usage, no such job or rank),
    130 interrupted.
    """
    from chaos.faults.behaviours import StillShown
    from chaos.faults.registered import fault_kind, kind_in_running_job

    loaded = fault_kind(kind)
    fault = kind_in_running_job(loaded) or loaded
    seconds = _seconds(duration, fault)
    job, chosen = _chosen(name, ranks)
    _refuse_what_needs_more(fault, job, chosen)
    parameters = _parameters(fault, settings, seconds)
    _refuse_what_this_machine_lacks(fault)
    fault = _aimed(fault, chosen, parameters)
    if dry_run:
        show(job, chosen, fault, as_json=as_json)
        return codes.PASS
    with _held(chosen, hearing=not isinstance(fault, StillShown)) as adopted_job:
        if sys.stdin.isatty() and sys.stderr.isatty() and not yes:
            show(job, chosen, fault, as_json=False, to_errors=True)
            click.confirm(f"{fault.name} {of_ranks(chosen)}?", abort=True, err=True)
        result = _inject(fault, job, chosen, adopted_job, seconds, parameters, reports, as_json=as_json)
    if as_json:
        echo_json(result.to_json())
    else:
        report(result)
    return _code(result)


def _chosen(name: str, ranks: tuple[int, ...]) -> tuple[RunningJob, list[JobProcess]]:
    """Return the job that the name matches, and the processes of the ranks to be hit."""
    from chaos.attach.choose import chosen_ranks, named_job
    from chaos.evidence.text import readable
    from chaos.jobs.kind import JobError
    from chaos.machine.running.running import survey

    try:
        jobs = survey()
        job = named_job(jobs, name, here=Path.cwd())
        return job, chosen_ranks(job, ranks, name, here=Path.cwd(), all_jobs=jobs.jobs)
    except JobError as error:
        raise click.UsageError(readable(str(error))) from error


def _inject(
    fault: FaultKind,
    job: RunningJob,
    chosen: list[JobProcess],
    adopted_job: AdoptedJob,
    seconds: float | None,
    parameters: dict[str, Any],
    reports: Path,
    *,
    as_json: bool,
) -> Injected:
    from chaos.attach.inject import inject
    from chaos.cli.progress import open_progress

    with ended_like_ctrl_c(), open_progress(to_errors=as_json) as progress:
        return inject(
            fault,
            job,
            chosen,
            adopted_job,
            seconds=seconds,
            parameters=parameters,
            reports=reports.absolute(),
            progress=progress,
            arguments=click.get_current_context().ensure_object(Settings).arguments,
        )


def _aimed(fault: FaultKind, chosen: list[JobProcess], parameters: dict[str, Any]) -> FaultKind:
    """Return the kind with its targets besides the ranks, found before anything is touched."""
    from chaos.evidence.text import readable
    from chaos.faults.kind import FaultMissed
    from chaos.faults.registered import aimed_kind

    try:
        return aimed_kind(fault, chosen, parameters)
    except (FaultMissed, OSError) as error:
        raise click.UsageError(readable(f"{fault.name} would hit nothing: {error}")) from error


def _seconds(duration: str | None, fault: FaultKind) -> float | None:
    from chaos.faults.behaviours import StillShown
    from chaos.scenario.models.duration import parse_duration

    if duration is None:
        return None
    if not isinstance(fault, StillShown):
        raise click.UsageError(f"--for: {fault.name} is over at once, so it has no duration")
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise click.UsageError(f"--for {duration}: {error}") from error


def _refuse_what_needs_more(fault: FaultKind, job: RunningJob, chosen: list[JobProcess]) -> None:
    from chaos.base.registry import registry
    from chaos.faults.example import example, needed_place, written
    from chaos.faults.kind import AGENT, needed_from_start
    from chaos.faults.registered import fault_kind

    why = needed_from_start(fault)
    if why is None:
        return
    scenario = example(fault, chosen[0].rank or 0, job.size or 0)
    place = needed_place(scenario)
    possible = [name for name in registry("faults").names() if needed_from_start(fault_kind(name)) is None]
    text = (
        f"{fault.name} cannot be injected into a running job: it {why}. "
        f"Faults for a running job: {', '.join(possible)}.\n"
        "Write it into a scenario, and let `chaos run SCENARIO` start the job. In this small example replace cluster, "
        f"job and values with your own{f'; it needs {place}' if place else ''}:\n\n{indent(written(scenario), '  ')}"
    )
    if why == AGENT:
        from chaos.run.launch.setup import AGENT_SITE

        text += (
            f"\nThat adds PYTHONPATH={AGENT_SITE} and CHAOS_AGENT (the agent's configuration, a file of the run) to "
            f"the ranks' environment before they start. PID {chosen[0].pid} was started without them."
        )
    raise click.UsageError(text)


def _parameters(fault: FaultKind, settings: dict[str, str], seconds: float | None) -> dict[str, Any]:
    """Return the fault's parameters.

    --for gives its duration; a kind with a limit has it here too.
    """
    from chaos.scenario.errors import suggest

    known = fault.parameters or {}
    accepted = [name for name in known if name != _SECONDS]
    if _SECONDS in settings and _SECONDS in known:
        raise click.UsageError(f"--set {_SECONDS}: give the duration of {fault.name} as --for TIME")
    parameters: dict[str, Any] = {}
    for name, text in settings.items():
        if name not in accepted:
            raise click.UsageError(f"--set {name}: {fault.name} has no parameter {name!r}; {suggest(name, accepted)}")
        parameters[name] = _value(text)
        if not known[name].takes(parameters[name]):
            parameter = known[name]
            raise click.UsageError(
                f"--set {name}={text}: {name} of {fault.name} is {parameter.range} ({parameter.about})"
            )
    for name in accepted:
        if known[name].required and name not in parameters:
            parameter = known[name]
            raise click.UsageError(f"{fault.name} needs --set {name}=…: {parameter.about}, {parameter.range}")
    if (limited := known.get(_SECONDS)) is not None and limited.required:
        if seconds is None or not limited.takes(seconds):
            raise click.UsageError(f"{fault.name} needs --for {limited.least:g}s to {limited.most:g}s: {limited.about}")
        parameters[_SECONDS] = seconds
    return parameters


def _value(text: str) -> object:
    """Return a number where the text is one, else the text."""
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _refuse_what_this_machine_lacks(fault: FaultKind) -> None:
    from chaos.doctor import Machine, probe

    missing = [candidate for candidate in probe(fault.needs, Machine()) if not candidate.ok]
    if missing:
        reasons = "; ".join(f"{result.need}: {result.seen}. {result.advice}" for result in missing)
        raise click.UsageError(f"{fault.name} cannot be injected on this machine: {reasons}")


def _held(chosen: list[JobProcess], *, hearing: bool) -> AdoptedJob:
    from chaos.machine.running.adopted import AdoptedJob

    try:
        return AdoptedJob([process.identity for process in chosen], hearing=hearing)
    except PermissionError as error:
        raise click.UsageError(
            f"{of_ranks(chosen)}: this user may not signal the process: run chaos as its user or as root"
        ) from error
    except (LookupError, ValueError, OSError) as error:
        raise click.UsageError(f"{of_ranks(chosen)}: {error}") from error


def _code(result: Injected) -> int:
    if result.left:
        return codes.HARNESS
    if result.interrupted:
        return codes.INTERRUPTED
    return codes.PASS if result.outcome == "landed" else codes.UNKNOWN
