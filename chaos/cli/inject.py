"""``chaos inject``: one fault in a job that runs already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chaos.cli import codes
from chaos.cli.debug import debug_option
from chaos.cli.interrupt import ended_like_ctrl_c
from chaos.cli.options import echo_json, job_option, json_option, reports_option

if TYPE_CHECKING:
    from chaos.faults.kind import FaultKind
    from chaos.platforms.adopted import AdoptedJob
    from chaos.platforms.running import JobProcess, RunningJob
    from chaos.run.adopted import Injected


@click.command("inject", short_help="Make one fault in a job that runs already.")
@click.argument("kind", metavar="KIND")
@job_option
@click.option("--rank", "ranks", type=click.IntRange(min=0), multiple=True, required=True, help="Repeat it for more.")
@click.option("--for", "duration", metavar="TIME", help="How long a suspension lasts: 10s, 2m. Default: until Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Show the processes that would be hit, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask, where somebody could be asked.")
@reports_option
@json_option
@debug_option
def command(
    kind: str,
    name: str,
    ranks: tuple[int, ...],
    duration: str | None,
    dry_run: bool,
    yes: bool,
    reports: Path,
    as_json: bool,
) -> int:
    """Make one fault in ranks of a job that runs already on this host, also in a container, and prove that it landed.

    KIND is a fault that needs no agent: kill, suspend or terminate. Only the ranks that are named are hit, by PID and
    start time. The fault is undone at the end, and the job goes on. What was done is recorded in the reports directory,
    how to undo it before it is done: `chaos heal` does that if this command is killed. On a terminal it asks first.

    \b
    Examples:
      chaos inject kill --rank 3 --job output/msrun_log --dry-run
      chaos inject kill --rank 3 --job output/msrun_log
      chaos inject suspend --rank 0 --rank 1 --job 4711 --for 30s

    \b
    Exit codes: 0 landed and undone, 2 not landed or unknown, 3 not undone or the
    harness failed, 64 nothing was done (bad usage, no such job or rank),
    130 interrupted.
    """
    from chaos.checks.text import readable
    from chaos.jobs.adopt import chosen_ranks, named_job
    from chaos.jobs.kind import JobError
    from chaos.platforms.running import survey
    from chaos.registry import registry

    fault: FaultKind = registry("faults").load(kind)
    seconds = _seconds(duration, fault)
    try:
        job = named_job(survey(), name, here=Path.cwd())
        chosen = chosen_ranks(job, ranks, name, here=Path.cwd())
    except JobError as error:
        raise click.UsageError(readable(str(error))) from error
    _refuse_what_needs_more(fault, chosen)
    if dry_run:
        _show(job, chosen, fault, as_json=as_json)
        return codes.PASS
    with _held(chosen, hearing=fault.effect != "suspension") as held:
        if sys.stdin.isatty() and sys.stderr.isatty() and not yes:
            _show(job, chosen, fault, as_json=False, to_errors=True)
            click.confirm(f"{fault.name} {_of(chosen)}?", abort=True, err=True)
        result = _inject(fault, job, chosen, held, seconds, reports, as_json=as_json)
    if as_json:
        echo_json(result.to_json())
    else:
        _report(result)
    return _code(result)


def _inject(
    fault: FaultKind,
    job: RunningJob,
    chosen: list[JobProcess],
    held: AdoptedJob,
    seconds: float | None,
    reports: Path,
    *,
    as_json: bool,
) -> Injected:
    from chaos.cli.progress import open_progress
    from chaos.run.adopted import inject

    with ended_like_ctrl_c(), open_progress(to_errors=as_json) as progress:
        return inject(fault, job, chosen, held, seconds=seconds, reports=reports.absolute(), progress=progress)


def _seconds(duration: str | None, fault: FaultKind) -> float | None:
    from chaos.scenario.duration import parse_duration

    if duration is None:
        return None
    if fault.effect != "suspension":
        raise click.UsageError(f"--for: {fault.name} has no end, only a suspension lasts")
    try:
        return parse_duration(duration)
    except ValueError as error:
        raise click.UsageError(f"--for {duration}: {error}") from error


def _refuse_what_needs_more(fault: FaultKind, chosen: list[JobProcess]) -> None:
    from chaos.faults.kind import AGENT, needed_from_start
    from chaos.registry import registry

    why = needed_from_start(fault)
    if why is None:
        return
    kinds = registry("faults")
    possible = [one for one in kinds.names() if needed_from_start(kinds.load(one)) is None]
    text = (
        f"{fault.name} cannot be made in a job that runs already: it {why}. "
        f"In a job that runs: {', '.join(possible)}.\n"
        f"Write it into a scenario and start the job by `chaos run SCENARIO`:\n"
        f"  faults:\n    - kind: {fault.name}\n      target: {{rank: {chosen[0].rank}}}\n"
        f"      trigger: {{step: 100, phase: step.begin}}"
    )
    if why == AGENT:
        from chaos.run.setup import AGENT_SITE

        text += (
            f"\nThat adds PYTHONPATH={AGENT_SITE} and CHAOS_AGENT (what the agent is told, a file of the run) to the "
            f"ranks' environment, from their first instruction on. PID {chosen[0].pid} was started without."
        )
    raise click.UsageError(text)


def _held(chosen: list[JobProcess], *, hearing: bool) -> AdoptedJob:
    from chaos.platforms.adopted import AdoptedJob

    try:
        return AdoptedJob([process.identity for process in chosen], hearing=hearing)
    except PermissionError as error:
        raise click.UsageError(
            f"{_of(chosen)}: this user may not signal it: call chaos as its user or as root"
        ) from error
    except (LookupError, ValueError, OSError) as error:
        raise click.UsageError(f"{_of(chosen)}: {error}") from error


def _of(chosen: list[JobProcess]) -> str:
    return ", ".join(f"rank {process.rank} (PID {process.pid})" for process in chosen)


def _show(
    job: RunningJob, chosen: list[JobProcess], fault: FaultKind, *, as_json: bool, to_errors: bool = False
) -> None:
    from chaos.cli.processes import show_processes
    from chaos.run.adopted import plain

    others = [process for process in job.processes if process not in chosen]
    if as_json:
        hit, rest = ([plain(one) for one in some] for some in (chosen, others))
        echo_json({"schema_version": 1, "fault": fault.name, "dry_run": True, "would_hit": hit, "others": rest})
        return
    click.echo(f"{fault.name} would hit:", err=to_errors)
    show_processes(chosen, to_errors=to_errors)
    named = ", ".join(f"{one.role if one.rank is None else f'rank {one.rank}'} {one.pid}" for one in others)
    click.echo(f"not hit: {named or 'nobody else is in this job on this host'}", err=to_errors)


def _report(result: Injected) -> None:
    click.echo(f"{result.outcome}: {result.kind}, see {result.run_dir}")
    for hit in result.hits:
        proof = "" if hit.evidence is None else _proof(hit.evidence)
        told = "; ".join(text for text in (proof, hit.why) if text)
        click.echo(f"  rank {hit.process.rank}, PID {hit.process.pid}: {hit.outcome}: {told}")
    if result.undone:
        click.echo("  undone: the job goes on")
    for text in result.left:
        click.echo(f"  NOT undone: {text}\n  next: mend that, then: chaos heal {result.run_dir}")


def _proof(evidence: dict[str, object]) -> str:
    became = f", {evidence['became']}" if "became" in evidence else ""
    return f"signal {evidence['signal']}{became}, says {evidence['said_by']}"


def _code(result: Injected) -> int:
    if result.left:
        return codes.HARNESS
    if result.interrupted:
        return codes.INTERRUPTED
    return codes.PASS if result.outcome == "landed" else codes.UNKNOWN
