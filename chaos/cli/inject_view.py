"""The output of ``chaos inject``: the targets, and the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from chaos.base.rank_sets import rank_set
from chaos.cli.options import echo_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chaos.attach.outcome import Hit, Injected
    from chaos.faults.kind import FaultKind
    from chaos.machine.running.running import JobProcess, RunningJob

MANY = 16
"""Most ranks that are listed one by one; more are printed as a set. --json and the history have the PID of each."""


def _targets(fault: FaultKind) -> list[dict[str, Any]]:
    from chaos.faults.behaviours import Aimed

    return fault.aim_records() if isinstance(fault, Aimed) else []


def show(
    job: RunningJob, chosen: list[JobProcess], fault: FaultKind, *, as_json: bool, to_errors: bool = False
) -> None:
    from chaos.attach.outcome import plain
    from chaos.cli.processes import show_processes
    from chaos.evidence.text import readable

    rest_of_job = [process for process in job.processes if process not in chosen]
    targets = _targets(fault)
    if as_json:
        hit, rest = ([plain(process) for process in some] for some in (chosen, rest_of_job))
        preview = {"schema_version": 1, "fault": fault.name, "dry_run": True, "would_hit": hit, "others": rest}
        echo_json(preview | ({"targets": targets} if targets else {}))
        return
    click.echo(f"{fault.name} would hit:", err=to_errors)
    show_processes(chosen, to_errors=to_errors)
    for process in chosen:
        if process.doubt:
            click.echo(readable(f"  rank {process.rank} by PID only: {process.doubt}"), err=to_errors)
    for target in targets:
        click.echo("  " + readable(", ".join(f"{name} {value}" for name, value in target.items())), err=to_errors)
    click.echo(f"not hit: {_list(rest_of_job) or 'no other process of this job is on this host'}", err=to_errors)


def _list(processes: Sequence[JobProcess]) -> str:
    """Return each with its PID; many ranks as a set."""
    ranks = _ranks(processes)
    listed = [process for process in processes if not ranks or process.role != "rank" or process.rank is None]
    texts = [f"{_who(process)} {process.pid}" for process in listed]
    return ", ".join([*texts, f"{rank_set(ranks)} (--dry-run --json lists the PIDs)"] if ranks else texts)


def _ranks(processes: Sequence[JobProcess]) -> list[int]:
    """Return the ranks among these where they are many, else none."""
    ranks = [process.rank for process in processes if process.role == "rank" and process.rank is not None]
    return ranks if len(ranks) > MANY else []


def of_ranks(chosen: Sequence[JobProcess]) -> str:
    """Return a text such as ``rank 0 (PID 4711), rank 1 (PID 4712)``; many ranks as a set."""
    ranks = _ranks(chosen)
    return rank_set(ranks) if ranks else ", ".join(f"rank {process.rank} (PID {process.pid})" for process in chosen)


def _who(process: JobProcess) -> str:
    if process.role == "rank":
        return "rank not known, PID" if process.rank is None else f"rank {process.rank}"
    return process.role


def report(result: Injected) -> None:
    click.echo(f"{result.outcome}: {result.kind}, see {result.run_dir}")
    alike: dict[str, list[JobProcess]] = {}
    for hit in result.hits:
        alike.setdefault(_became(hit), []).append(hit.process)
    for hit in result.hits:
        text, process = _became(hit), hit.process
        if not (ranks := _ranks(alike[text])):
            click.echo(f"  rank {process.rank}, PID {process.pid}: {text}")
        elif process is alike[text][0]:
            click.echo(f"  {rank_set(ranks)}: {text}")
    if result.undone:
        click.echo("  undone: the job goes on")
    for text in result.left:
        click.echo(f"  NOT undone: {text}\n  next: fix that, then: chaos heal {result.run_dir}")


def _became(hit: Hit) -> str:
    proof = "" if hit.evidence is None else _proof(hit.evidence)
    return f"{hit.outcome}: {'; '.join(text for text in (proof, hit.why) if text)}"


def _proof(evidence: dict[str, object]) -> str:
    if evidence["signal"] is None:
        shown = ", ".join(f"{name} {value}" for name, value in evidence.items() if name not in ("signal", "said_by"))
        return f"{shown}, says {evidence['said_by']}"
    became = f", {evidence['became']}" if "became" in evidence else ""
    return f"signal {evidence['signal']}{became}, says {evidence['said_by']}"
