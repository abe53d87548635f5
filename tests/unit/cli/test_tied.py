"""What a soak or pytest has started ends with it, also when it is ended by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from chaos.cli import codes
from chaos.cli.with_parent import command_of, tied

PARENT = """
import subprocess, sys, time
code = '''
import os, signal, sys
from chaos.machine.linux.children import end_with_parent
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"told"), os._exit(0)))
assert end_with_parent(int(sys.argv[1]), signal.SIGTERM)
os.write(1, b"tied\\\\n")
signal.pause()
'''
import os
subprocess.Popen([sys.executable, "-c", code, str(os.getpid())])
time.sleep(1000)
"""


def test_a_child_is_told_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"tied\n"
        parent.kill()
        assert parent.stdout.read() == b"told", "the pipe ends with the child"


def test_a_child_whose_parent_has_ended_already_does_nothing() -> None:
    code = "import signal; raise SystemExit(0)"
    with subprocess.Popen([sys.executable, "-c", code]) as gone:
        gone.wait()
    done = subprocess.run(command_of(gone.pid, ["list"]), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (codes.INTERRUPTED, b"")


def test_a_tied_command_is_the_command_line() -> None:
    done = subprocess.run(command_of(os.getpid(), ["--version"]), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("chaos") and signal.getsignal(signal.SIGTERM) is not None


OTHER = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"told"), os._exit(0)))
os.write(1, b"tied\\n")
signal.pause()
"""


def test_another_command_is_told_as_well() -> None:
    caller = "import os, subprocess, sys; from chaos.cli.with_parent import tied; "
    caller += "subprocess.run(tied(os.getpid(), [sys.executable, '-c', sys.argv[1]]))"
    with subprocess.Popen([sys.executable, "-c", caller, OTHER], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"tied\n"
        parent.kill()
        assert parent.stdout.read() == b"told", "the pipe ends with the command"


def test_another_command_is_run_with_its_arguments_and_its_code() -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    command = tied(os.getpid(), [sys.executable, "-c", code, "run", "--json"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "['run', '--json']\n")
