"""The command ``chaos init``, and what it prints."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from chaos.base.refusal import Refused
from chaos.cli import completion
from chaos.cli.debug import debug_option
from chaos.cli.options import echo_json, json_option

_FAULT = "kill"
_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command("init", short_help="Write a first scenario for the job in a directory.")
@click.argument("directory", required=False, type=_DIRECTORY, metavar="[DIR]")
@click.option(
    "--script", type=click.Path(path_type=Path), help="The script that trains. Default: the one of a launch line."
)
@click.option(
    "--launch", metavar="COMMAND", help="The command that starts the job, in quotes. Default: that of a shell script."
)
@click.option(
    "--ranks", type=click.IntRange(1, 1024), help="Number of ranks. Default: that of the launch line, else 2."
)
@click.option("--argument", "arguments", multiple=True, metavar="TEXT", help="An argument of the script; repeat it.")
@click.option(
    "--resume-argument",
    "resume_arguments",
    multiple=True,
    metavar="TEXT",
    help="A further argument with which the script goes on from a checkpoint; 'none' if it does so by itself.",
)
@click.option("--steps", type=click.IntRange(min=2), help="Steps that each rank trains in all.")
@click.option("--checkpoint-interval", type=click.IntRange(min=1), help="Every how many steps it saves.")
@click.option("--savers", type=click.Choice(["every rank", "replica groups"]), help="Who has to save.")
@click.option("--pipeline-stages", type=click.IntRange(min=1), help="Stages of the pipeline. Default: no pipeline.")
@click.option("--model-parallel", type=click.IntRange(min=1), help="Ranks that share each layer. Default: none do.")
@click.option("--sharded-optimizer", is_flag=True, help="The ranks share the optimizer's state among them.")
@click.option("--device", type=click.Choice(["CPU", "Ascend", "GPU"]), help="The device that it trains on.")
@click.option(
    "--fault",
    default=_FAULT,
    show_default=True,
    metavar="KIND",
    shell_complete=completion.kinds,
    help="The fault, one of those that chaos faults lists.",
)
@click.option("--fault-step", type=click.IntRange(min=1), help="Its step. Default: behind the first checkpoint.")
@click.option("--name", metavar="NAME", help="Name of the scenario and of its file. Default: SCRIPT-FAULT.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--dry-run", is_flag=True, help="Print the scenario, write nothing.")
@click.option("--example", is_flag=True, help="Write a small job and its scenario, which work at once.")
@json_option
@debug_option
def command(directory: Path | None, *, example: bool, as_json: bool, **flags: Any) -> int:
    """Look at the job in DIR (default: here), and write a first scenario for it.

    The script and the shell scripts beside it are read as text: nothing of them is executed or imported. Each value of
    the scenario has a comment: the line of the job that says it, or CHECK where it is a guess. In a terminal chaos
    init asks for what it cannot read; elsewhere it never asks.

    \b
    Examples:
      chaos init --example            a job that works at once, in chaos-example/
      chaos init                      the job in this directory
      chaos init --launch "mpirun -n 4 python train.py --epochs 3"
      chaos init jobs/mine --steps 24 --resume-argument=--resume
      chaos init --fault terminate --name polite-end

    \b
    Then:
      chaos plan train-kill.yaml      what should happen; starts nothing
      chaos run train-kill.yaml

    Exit codes: 0 written; 64 no script, or several, or the plan refuses what follows from the flags.
    """
    try:
        if example:
            return _example(directory, force=bool(flags["force"]), as_json=as_json)
        return _scenario(directory or Path(), flags, as_json=as_json)
    except Refused as error:
        raise click.UsageError(str(error)) from error


def _example(directory: Path | None, *, force: bool, as_json: bool) -> int:
    from chaos.init.entries import Wishes
    from chaos.init.place import write_new
    from chaos.init.words import next_lines
    from chaos.init.work import work_out
    from chaos.init.written_example import DIRECTORY, has_framework, write_example

    place, genuine = directory or Path(DIRECTORY), has_framework()
    written = write_example(place, with_framework=genuine, force=force)
    if genuine:
        result = work_out(place.resolve(), Wishes(fault=_FAULT), script=None, arguments=None, ask=None)
        written.append(place / result.file.name)
        write_new(written[-1], result.text, force=force)
    if as_json:
        echo_json({"schema_version": 1, "files": [str(path) for path in written], "genuine": genuine})
        return 0
    if not genuine:
        click.echo("MindSpore is not installed here, so the example trains in plain Python, without a framework.")
        click.echo("With it (pip install 'chaos-ascend[mindspore]') the example is a script under msrun.")
    for path in written:
        click.echo(f"wrote {path}")
    _section("next", next_lines(str(written[-1])))
    return 0


def _scenario(directory: Path, flags: dict[str, Any], *, as_json: bool) -> int:
    from chaos.init.entries import Wishes
    from chaos.init.place import write_new
    from chaos.init.words import advice_lines, guess_lines, launch_lines, next_lines, survey_lines
    from chaos.init.work import work_out

    place = directory.resolve()
    if not place.is_dir():
        raise Refused(f"there is no directory {directory}")
    dry_run, force = bool(flags.pop("dry_run")), bool(flags.pop("force"))
    script, launch, arguments = flags.pop("script"), flags.pop("launch"), flags.pop("arguments") or None
    resume = flags.pop("resume_arguments") or None
    wishes = Wishes(resume_arguments=() if resume == ("none",) else resume, **flags)
    asks = not as_json and sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    ask = _asked if asks else None
    result = work_out(place, wishes, script=script, arguments=arguments, ask=ask, launch=launch)
    file = directory / result.file.name
    if not dry_run:
        write_new(file, result.text, force=force)
    parts = {
        "found": list(survey_lines(result.survey)),
        "guessed": list(guess_lines(result.draft)),
        "advice": [*launch_lines(result.own, result.draft), *advice_lines(result.survey, result.draft)],
        "next": list(next_lines(str(file))),
    }
    if as_json:
        echo_json({"schema_version": 1, "file": None if dry_run else str(file), "text": result.text, **parts})
        return 0
    _section("found", parts["found"])
    _section("guessed, marked CHECK in the file", parts["guessed"])
    _section("to know", parts["advice"])
    if dry_run:
        click.echo(f"not written: {file}\n")
        click.echo(result.text, nl=False)
    else:
        click.echo(f"wrote {file}")
        _section("next", parts["next"])
    return 0


def _asked(question: str, default: str) -> str:
    return str(click.prompt(question, default=default, err=True))


def _section(title: str, lines: Iterable[str]) -> None:
    from chaos.scenario.errors import printable

    shown = [printable(line) for line in lines]
    if shown:
        click.echo(f"{title}:")
        for line in shown:
            click.echo(f"  {line}")
