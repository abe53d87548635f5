"""The command ``chaos``: a group whose commands are imported when they are called, and its exit codes.

This module imports click and the standard library only, so that ``chaos --help`` stays quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import click

from chaos import __version__
from chaos.cli import codes
from chaos.cli.debug import Settings, debug_option
from chaos.cli.libraries import quiet_libraries
from chaos.cli.streams import OutputLost, guarded_streams, hold_closed_descriptors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "init": "Write a first scenario for the job in a directory.",
    "run": "Run scenarios: start the job, inject the faults, judge.",
    "plan": "Print what should happen. Starts nothing.",
    "validate": "Check scenario files and print every problem.",
    "list": "List scenarios by their folders.",
    "faults": "List kinds of faults; explain one, with an example.",
    "schema": "Print the JSON Schema of a scenario.",
    "steps": "Print chaos_steps.py, for a training loop of your own.",
    "analyze": "Judge a run again from its files.",
    "report": "Make the page of a run, or of a directory of runs.",
    "serve": "Show runs, also those in progress, in a browser.",
    "soak": "Run scenarios many times and add up the verdicts.",
    "calibrate": "Measure the noise of a job and write its tolerance.",
    "selftest": "Put defects into recoveries; the checks must catch them.",
    "compare": "Compare two runs phase by phase.",
    "trend": "Show times of each phase over many runs.",
    "gate": "Fail when newer runs got slower or worse.",
    "cost": "Estimate what failures cost with each mechanism.",
    "export": "Print runs for dashboards and annotations.",
    "logs": "Parse any log into events; list the lines no reader recognises.",
    "inject": "Make one fault in a job that runs already.",
    "watch": "Follow a job that runs already, or a run.",
    "kubernetes": "Check manifests of a job; print those of a scenario, and the rights needed.",
    "image": "Make the image that nodes are made of on the platform docker.",
    "heal": "Undo what an interrupted run has left behind.",
    "doctor": "Show what this machine can run, and what is missing.",
}
"""Commands in the order of the help, each in chaos/cli/commands/<name>.py, with its line in the help."""

COMPLETE = {"_CHAOS_COMPLETE": "chaos", "_CHAOS_ASCEND_COMPLETE": "chaos-ascend"}
"""The variable with which the script of a shell asks for completions, and the name of the command in that script."""

_OPTIONS = {"help": "--help", "version": "--version"}
"""Words that are commands of other programs, and the options that they are here."""

HELP = """Break a training job on purpose and judge whether it recovers as promised.

\b
Examples:
  chaos doctor                        what can this machine run?
  chaos init                          a first scenario for the job in this directory
  chaos plan kill-rank.yaml           what should happen? starts nothing
  chaos run kill-rank.yaml            run it; the result is in reports/latest
  chaos run kill-rank-phases.yaml --cell phase=forward
  chaos analyze reports/latest        the verdict again, from the files
  chaos heal                          undo what a killed run has left

\b
Exit codes:
  0  pass                 3  the harness itself failed
  1  fail                64  bad usage or bad scenario
  2  unknown            130  interrupted
"""


class LazyGroup(click.Group):
    """A group that imports a command when it is called, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; return None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        command: click.Command = import_module(f"chaos.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; where it does not exist, suggest the probable name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], [*COMMANDS, *_OPTIONS], n=1)
            hint = f" There are {', '.join(COMMANDS)}."
            if near:
                option = _OPTIONS.get(near[0])
                hint = f" Did you mean {near[0] if option is None else f'chaos {option}'!r}?"
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands from the table, so that none has to be imported, and options."""
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, so that none has to be imported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="chaos")
@debug_option
def cli() -> None:
    pass


def entry(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. The console script ``chaos`` calls this.

    ``arguments`` are those after the command's name; by default those of this process.
    """
    for variable, name in COMPLETE.items():
        if variable in os.environ:
            from click.shell_completion import shell_complete

            from chaos.cli.shell_words import complete_as_shells_need

            complete_as_shells_need()
            return shell_complete(cli, {}, name, variable, os.environ[variable])
    if (code := _refuse_closed(hold_closed_descriptors())) is not None:
        return code
    settings = Settings(debug=os.environ.get("CHAOS_DEBUG", "") not in ("", "0"))
    words = list(sys.argv[1:] if arguments is None else arguments)
    with guarded_streams() as output, nullcontext() if settings.debug or "--debug" in words else quiet_libraries():
        code = _invoke(words, settings)
    if output.lost is None or code in (codes.USAGE, codes.INTERRUPTED):
        return code
    kept = f"; {settings.kept}" if settings.kept else ""
    _say(f"chaos: not everything could be written to standard output: {output.lost}{kept}")
    return codes.HARNESS


def _refuse_closed(closed: Sequence[str]) -> int | None:
    """Refuse to work where no stream could show the result; return None where that is no reason."""
    lacking = [name for name in closed if name != "standard input"]
    if not lacking:
        return None
    are = "is" if len(lacking) == 1 else "are"
    _say(f"chaos: {' and '.join(lacking)} {are} closed, so nothing was started: connect a file or /dev/null")
    return codes.USAGE


def _say(text: str) -> None:
    """Print a line on standard error, else on standard output, else nowhere."""
    for stream in (sys.stderr, sys.stdout):
        if stream is not None:
            with suppress(OSError, ValueError):
                print(text, file=stream, flush=True)
                return


def _invoke(arguments: list[str], settings: Settings) -> int:
    """Run a command and turn every way in which it can end into an exit code."""
    try:
        settings.arguments = tuple(arguments)  # click empties the list
        with cli.make_context("chaos", arguments, obj=settings) as context:
            code = cli.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        _show(error)
        return codes.USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("chaos: interrupted", err=True)
        return codes.INTERRUPTED
    except OutputLost:
        return codes.HARNESS  # shown when everything has ended
    except Exception as error:
        return _failed(error, arguments, settings)
    return code if isinstance(code, int) else codes.PASS


def _show(error: click.ClickException) -> None:
    """Print the exception. It may quote a path that is no text, which no stream takes, or one that moves the cursor."""
    from chaos.scenario.errors import printable

    text = "\n".join(printable(line) for line in error.format_message().split("\n"))
    (click.UsageError(text, error.ctx) if isinstance(error, click.UsageError) else click.ClickException(text)).show()


def _failed(error: Exception, arguments: list[str], settings: Settings) -> int:
    """Report an exception that no command has turned into a message of its own."""
    from chaos.base.refusal import Refused
    from chaos.base.registry import RegistryError, UnknownName
    from chaos.cli.failure import explain
    from chaos.scenario.errors import ScenarioError

    if isinstance(error, (ScenarioError, UnknownName)):
        click.echo(str(error), err=True)
        return codes.USAGE
    if isinstance(error, RegistryError) and not settings.debug:
        click.echo(f"chaos: {error}", err=True)
        return codes.HARNESS

    click.echo(explain(error, arguments, debug=settings.debug), err=True)
    return codes.USAGE if isinstance(error, Refused) else codes.HARNESS
