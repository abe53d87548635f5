"""The helper's report of the packages that a job's ranks find on its node. No package is imported."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_MARK = "lacking:"
_LOOK = f"""
import importlib.util, os, sys
sys.path[:1] = []
def has(name):
    if name == "msrun":
        return os.path.exists(os.path.join(sys.argv[1], name))
    found = importlib.util.find_spec(name)
    return found is not None and found.origin is not None
print("{_MARK}", *[name for name in sys.argv[2:] if not has(name)])
"""
"""Finds modules; importing one may take half a minute. A directory of such a name is no module."""

SECONDS = 60.0
"""How long a Python may take to answer, on a busy node with its packages on a share."""
_QUOTED = 300


class PackageRequests:
    """The part of the remote helper that handles packages; arguments and results are JSON."""

    def lacking(self, python: str, needs: list[str], path: str) -> list[str]:
        """Return the packages that a Python lacks, or that are not beside it; ``path`` replaces PYTHONPATH where given.

        Raises ValueError where that Python does not answer.
        """
        environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
        look = [python, "-c", _LOOK, str(Path(python).parent), *needs]
        try:
            done = subprocess.run(
                look,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
            )
        except OSError as error:
            raise ValueError(f"{python} cannot be run: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{python} has not said within {SECONDS:g} s what it has") from error
        output = done.stdout.decode("utf-8", "replace")
        answers = [line.split()[1:] for line in output.splitlines() if line.startswith(_MARK)]
        if done.returncode != 0 or len(answers) != 1:
            raise ValueError(f"{python} ended with {done.returncode}: {output.strip()[-_QUOTED:]}")
        return answers[0]
