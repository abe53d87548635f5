"""Whatever becomes of standard input, output and error, no command ends with a code that reads as a verdict."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.cli import codes
from chaos.cli.streams import NAMES, Errors, Output, OutputLost, guarded_streams

pytestmark = pytest.mark.processes

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


def test_a_full_disk_under_the_output_is_told_with_its_reason() -> None:
    stream = Output(Failing())
    with pytest.raises(OutputLost, match="No space left"):
        stream.write("text")
    assert stream.lost == "No space left on device"


def test_errors_that_nobody_can_be_told_end_nothing() -> None:
    stream = Errors(Failing())
    assert stream.write("text") == 4
    assert stream.lost is None


def test_the_streams_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr("sys.stdout", stream)
    with guarded_streams():
        assert stream.errors != "strict"
    assert sys.stdout is stream and stream.errors == "strict"


def chaos_in_shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`chaos` with its streams as a shell makes them."""
    line = f'set -o pipefail; "$0" -m chaos {" ".join(arguments)} {redirection}'
    return subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["--help", "no-such-command"])
@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        (">&-", "chaos: standard output is closed, so nothing was started"),
        ("2>&-", "chaos: standard error is closed, so nothing was started"),
        (">&- 2>&-", ""),
        ("<&- >&- 2>&-", ""),
    ],
)
def test_a_closed_stream_is_bad_usage_and_told_on_the_other(command: str, redirection: str, said: str) -> None:
    done = chaos_in_shell(redirection, command)
    printed = done.stdout + done.stderr
    assert done.returncode == codes.USAGE
    assert printed.startswith(said) and printed.count("\n") == (1 if said else 0)


@pytest.mark.parametrize(("arguments", "code"), [("--help", codes.PASS), ("no-such-command", codes.USAGE)])
def test_a_closed_standard_input_is_asked_nothing(arguments: str, code: int) -> None:
    done = chaos_in_shell("<&-", arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


@pytest.mark.parametrize(
    ("redirection", "reason"), [(">/dev/full", "No space left on device"), ("| true", "Broken pipe")]
)
def test_output_that_cannot_be_written_is_3_and_one_sentence(redirection: str, reason: str) -> None:
    done = chaos_in_shell(redirection, "--help")
    assert done.returncode == codes.HARNESS
    assert done.stderr == f"chaos: not everything could be written to standard output: {reason}\n"


@pytest.mark.parametrize(("arguments", "code"), [("--help", codes.PASS), ("no-such-command", codes.USAGE)])
def test_errors_on_a_full_disk_leave_the_exit_code(arguments: str, code: int) -> None:
    assert chaos_in_shell("2>/dev/full", arguments).returncode == code


OPENS = """
from chaos.cli.streams import hold_closed_descriptors
closed = hold_closed_descriptors()
taken = open("/dev/null").fileno()
import sys, os
try:
    sys.stdin.read()
    empty = True
except OSError:
    empty = False
with open(os.environ["TOLD"], "w") as told:
    print(*closed, taken > 2, empty, sep=";", file=told)
"""


def test_no_file_of_ours_comes_into_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    path = tmp_path / "told"
    line = '"$0" -c "$1" <&- >&- 2>&-'
    subprocess.run(["bash", "-c", line, sys.executable, OPENS], check=True, env={**os.environ, "TOLD": str(path)})
    # A standard input that is closed cannot be read; it is not taken for an empty one.
    assert path.read_text() == ";".join((*NAMES, "True", "False")) + "\n"


def test_a_broken_installation_is_no_verdict() -> None:
    code = "import sys; sys.modules['click'] = None; from chaos.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == codes.HARNESS
    assert done.stderr.startswith("chaos: the command cannot start: ") and done.stderr.count("\n") == 1
