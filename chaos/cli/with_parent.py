"""``python -m chaos.cli.with_parent PID ARGUMENT...``: the command line, ended like Ctrl-C when process PID ends.

It is for programs that start runs, as a soak and pytest do: after a SIGKILL of such a program nobody would count the
runs, or stop them. ``python -m chaos.cli.with_parent PID -- COMMAND...`` does the same with any other command.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from chaos.cli import codes
from chaos.machine.linux.children import end_with_parent

_OTHER = "--"


def command_of(parent: int, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs ``chaos`` with ``arguments`` tied to process ``parent``.

    The thread that starts it has to wait for it: the kernel counts the end of that thread as the parent's.
    """
    return [sys.executable, "-m", "chaos.cli.with_parent", str(parent), *arguments]


def tied(parent: int, command: Sequence[str]) -> list[str]:
    """Return the command that runs another ``command`` tied to process ``parent``, as :func:`command_of` does."""
    return command_of(parent, [_OTHER, *command])


def _main(parent: int, arguments: list[str]) -> int:
    if not end_with_parent(parent, signal.SIGTERM):
        return codes.INTERRUPTED
    if arguments[:1] == [_OTHER]:
        os.execvp(arguments[1], arguments[1:])  # the kernel's setting stays
    from chaos.cli.main import entry

    return entry(arguments)


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), sys.argv[2:]))
