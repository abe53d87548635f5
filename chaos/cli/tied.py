"""``python -m chaos.cli.tied PID ARGUMENT...``: the command line, ended like Ctrl-C when process PID ends.

For commands that start others, as a soak does: after a SIGKILL of the one that started them nobody would count their
runs, or stop them.
"""

from __future__ import annotations

import signal
import sys

from chaos.cli import codes
from chaos.cli.main import entry
from chaos.platforms.children import end_with_parent


def command_of(parent: int, arguments: list[str]) -> list[str]:
    """The command that runs ``arguments`` tied to process ``parent``, to be started by a thread that waits for it."""
    return [sys.executable, "-m", "chaos.cli.tied", str(parent), *arguments]


if __name__ == "__main__":
    if not end_with_parent(int(sys.argv[1]), signal.SIGTERM):
        sys.exit(codes.INTERRUPTED)
    sys.exit(entry(sys.argv[2:]))
