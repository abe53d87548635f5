"""A terminal that is closed ends neither a command nor its exit code: what it would have shown goes nowhere."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys

import pytest

from chaos.cli import codes
from chaos.cli.terminal import Terminal, outliving_their_terminal

WAITS = """
import sys
sys.stdin.read()
from chaos.cli.main import entry
code = entry(sys.argv[1:])

sys.exit(code)
"""


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--help"], codes.PASS), (["no-such-command"], codes.USAGE)], ids=["output", "errors"]
)
def test_a_command_ends_as_it_would_have_without_its_terminal(arguments: list[str], code: int) -> None:
    master, slave = os.openpty()
    command = [sys.executable, "-c", WAITS, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=slave, stderr=slave) as process:
        os.close(slave)
        os.close(master)
        process.communicate()
    assert process.returncode == code


class Failing(io.StringIO):
    """A stream on a disk that is full."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_other_errors_are_told() -> None:
    with pytest.raises(OSError, match="No space left"):
        Terminal(Failing()).write("text")


def test_what_is_no_terminal_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    before = sys.stdout
    with outliving_their_terminal():
        assert sys.stdout is before
