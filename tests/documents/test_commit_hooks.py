"""What is checked before a commit is what .ci/run checks first, with the same programs; subjects have their form."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos import bootstrap
from tests.documents.blocks import ROOT

pytestmark = pytest.mark.processes

CONFIG: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
HOOKS: list[dict[str, Any]] = [hook for repository in CONFIG["repos"] for hook in repository["hooks"]]
SUBJECT = ROOT / ".ci" / "commit_subject.py"


def test_no_hook_fetches_anything() -> None:
    assert {repository["repo"] for repository in CONFIG["repos"]} == {"local"}
    assert {hook["language"] for hook in HOOKS} == {"system"}
    assert not any("additional_dependencies" in hook for hook in HOOKS)


def test_each_check_of_the_code_in_the_whole_set_is_a_hook_with_the_same_command() -> None:
    commands = {hook["name"]: hook["entry"] for hook in HOOKS}
    checks = [(name, command) for name, command in bootstrap.PHASES if command[0] != "pytest"]
    assert [name for name, _ in checks] == ["ruff check", "ruff format", "mypy"]
    for name, (program, *arguments) in checks:
        assert commands[name] == shlex.join([f".venv/bin/{program}", *arguments])


def test_whatever_file_a_hook_names_is_there() -> None:
    paths = {word for hook in HOOKS for word in shlex.split(hook["entry"]) if word.endswith(".py")}
    assert str(SUBJECT.relative_to(ROOT)) in paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def check(message: str, directory: Path) -> tuple[int, list[str]]:
    """Check a message as the hook does; return the exit code and what is wrong."""
    (directory / "message").write_text(message)
    command = [sys.executable, str(SUBJECT), str(directory / "message")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    "message",
    [
        "Refuse a fault without a registered proof\n\nIt was told as landed.\n",
        "Need a proof for each fault",
        "X" * 60 + "\n",
        "# a comment\nHold one step\n# another\n\n# ------------------------ >8 ------------------------\n.\n",
        "fixup! Refuse a fault without a registered proof, which is longer than all others\n",
    ],
)
def test_a_message_of_that_form_is_taken(message: str, tmp_path: Path) -> None:
    assert check(message, tmp_path) == (0, [])


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("X" * 61 + "\n\nBody.\n", "61 characters"),
        ("refuse a fault\n", "capital letter"),
        ("\n", "capital letter"),
        ("The fault is refused\n", "is an order"),
        ("Refused a fault\n", "is an order"),
        ("Refusing a fault\n", "is an order"),
        ("Refuse a fault.\n", "full stop"),
        ("Refuse a fault\nIt was told as landed.\n", "empty line"),
    ],
)
def test_another_message_is_refused_with_the_reason(message: str, problem: str, tmp_path: Path) -> None:
    code, (said,) = check(message, tmp_path)
    assert code == 1 and problem in said
