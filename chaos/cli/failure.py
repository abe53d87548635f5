"""The message for a failure of the harness itself."""

from __future__ import annotations

import errno
import platform
import shlex
import sys
import traceback
from collections.abc import Sequence

from chaos import __version__
from chaos.base.clock import BootUnknown
from chaos.base.refusal import Refused
from chaos.machine.job.protocol import PlatformError
from chaos.scenario.errors import ScenarioError

_UNWRITABLE = {
    errno.ENOSPC: "The disk is full",
    errno.EDQUOT: "The disk quota is used up",
    errno.EROFS: "The file system is read-only",
}


def explain(error: BaseException, arguments: Sequence[str], *, debug: bool) -> str:
    """Return the message that the harness failed: the place, and the facts for a report; or why it refused to start.

    ``arguments`` are the command line's. The traceback is included only with ``debug``.
    """
    if isinstance(error, Refused):
        return f"chaos: the run was not started: {error}"
    if isinstance(error, ScenarioError):
        return str(error)
    if isinstance(error, BootUnknown) and not debug:
        return f"chaos: {error}"
    if (why := _unwritable(error)) is not None and not debug:
        return (
            f"chaos: aborted, so there is no verdict: {error}\n"
            f"  {why}. Processes that were started were ended and faults undone; when the directory can be written\n"
            f"  again, `chaos heal` makes sure of that, and `chaos analyze` judges a run that had come to its end."
        )
    if isinstance(error, PlatformError) and not debug:
        return (
            f"chaos: aborted, so there is no verdict: {error}\n"
            "  Processes that were started were ended and faults undone; `chaos heal` makes sure of that."
        )
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


def _unwritable(error: BaseException | None) -> str | None:
    """Return why the disk took nothing more, if that has caused the error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            return _UNWRITABLE[error.errno]
        error = error.__cause__
    return None
