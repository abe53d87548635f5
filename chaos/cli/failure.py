"""What is printed when the harness itself fails."""

from __future__ import annotations

import platform
import shlex
import sys
import traceback
from collections.abc import Sequence

from chaos import __version__
from chaos.run.refusal import Refused


def explain(error: BaseException, arguments: Sequence[str], *, debug: bool) -> str:
    """Say that the harness failed, where, and what to put into a report of it; or only why it refused to start.

    ``arguments`` are the command line's. The traceback is included only with ``debug``.
    """
    if isinstance(error, Refused):
        return f"chaos: the run was not started: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    lines = [
        f"chaos: the harness itself failed, so there is no verdict: {type(error).__name__}: {error}",
        f"  at {place}",
        f"  Please report this text with the command `chaos {shlex.join(arguments)}`, chaos {__version__}, "
        f"Python {platform.python_version()} on {sys.platform},",
        "  and the directory of the run (reports/latest) if one was started. `chaos heal` undoes what it has left.",
    ]
    if debug:
        lines.append("".join(traceback.format_exception(error)).rstrip())
    else:
        lines.append("  Add --debug for the traceback.")
    return "\n".join(lines)
