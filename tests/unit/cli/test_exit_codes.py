"""Every way in which a command can end has its exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from chaos.base.registry import RegistryError, UnknownName
from chaos.cli import codes
from chaos.cli.main import COMMANDS, cli
from chaos.scenario.errors import Problem, ScenarioError
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes `chaos plan` raise."""

    def set_error(error: BaseException) -> None:
        @click.command("plan")
        def command() -> None:
            raise error

        monkeypatch.setattr(cli, "get_command", lambda context, name: command)

    return set_error


@pytest.mark.parametrize(
    "arguments",
    [(), ("rnu",), ("--colour",), ("run",), ("plan", "--sed", "1"), ("run", "x", "--seed", "many"), ("logs", "/none")],
)
def test_bad_usage_is_64(chaos: Call, arguments: tuple[str, ...]) -> None:
    ended = chaos(*arguments)
    assert ended.code == codes.USAGE
    assert "Usage: chaos" in ended.err
    assert ended.out == ""


def test_a_mistyped_command_is_told_what_was_meant(chaos: Call) -> None:
    assert "Did you mean 'analyze'?" in chaos("analyse").err


def test_a_bad_setting_is_64(chaos: Call) -> None:
    ended = chaos("plan", "x", "--set", "victim")
    assert (ended.code, "name=value" in ended.err) == (codes.USAGE, True)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ScenarioError([Problem("a.yaml", 3, 1, "rank 9 of 4")]), 64, "a.yaml:3:1: rank 9 of 4"),
        (UnknownName("unknown fault kind 'kil'"), 64, "unknown fault kind 'kil'"),
        (RegistryError("stale"), 3, "chaos: stale"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("broken"), 3, "the harness itself failed, so there is no verdict: ValueError: broken"),
    ],
)
def test_what_a_command_raises_becomes_a_code_and_a_message(
    chaos: Call, raising: Callable[[BaseException], None], error: BaseException, code: int, text: str
) -> None:
    raising(error)
    ended = chaos("plan")
    assert ended.code == code
    assert text in ended.err
    assert "Traceback" not in ended.err


def test_the_traceback_is_there_when_it_is_asked_for(
    chaos: Call, raising: Callable[[BaseException], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    raising(ValueError("broken"))
    assert "Traceback" in chaos("--debug", "plan").err
    monkeypatch.setenv("CHAOS_DEBUG", "1")
    assert "Traceback" in chaos("plan").err


def test_every_verdict_has_a_code() -> None:
    assert [codes.of_verdict(verdict) for verdict in ("pass", "fail", "unknown")] == [0, 1, 2]
    with pytest.raises(ValueError, match="no verdict 'maybe'"):
        codes.of_verdict("maybe")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_helps_with_an_example_and_has_the_line_of_the_table(chaos: Call, name: str) -> None:
    ended = chaos(name, "--help")
    assert ended.code == 0
    assert f"chaos {name}" in ended.out
    command = cli.get_command(click.Context(cli), name)
    assert command is not None and command.short_help == COMMANDS[name]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from chaos.cli.main import entry; entry(['--help']);"
        "print(sorted({'pydantic', 'rich', 'yaml', 'numpy', 'mindspore', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "Exit codes:" in done.stdout


def test_output_that_is_no_terminal_has_no_colours() -> None:
    done = subprocess.run([sys.executable, "-m", "chaos", "rnu"], capture_output=True, text=True)
    assert done.returncode == codes.USAGE
    assert "\x1b" not in done.stdout + done.stderr
