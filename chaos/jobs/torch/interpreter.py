"""The interpreter of a job's ranks: a user's own, with a PyTorch for their devices, or that of the harness.

It is asked for its releases by the metadata of its packages: nothing of them is imported, and nothing is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from chaos.jobs.kind import JobError
from chaos.scenario.models.scenario import Scenario

OLDEST = (3, 9)
"""The oldest Python that the agent runs in."""

_SECONDS = 60.0

_ASK = """
import json, platform
from importlib import metadata
found = {"python": platform.python_version()}
for name in ("torch", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def interpreter(scenario: Scenario, directory: Path) -> Path | None:
    """Return the interpreter that a scenario in ``directory`` names; None where it names none.

    A name without a separator is looked for on PATH. A link stays: a virtual environment is known by its link. Raises
    JobError where nothing there can be executed.
    """
    named = scenario.job.python
    if named is None:
        return None
    if os.sep not in named:
        found = shutil.which(named)
        if found is None:
            raise JobError(f"there is no program {named} on PATH")
        return Path(found).absolute()
    path = (directory / Path(named).expanduser()).absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise JobError(f"{path} cannot be executed")
    return path


@cache
def releases(python: Path) -> Mapping[str, str]:
    """Return the releases of an interpreter, of its PyTorch and of its numpy. Raises JobError where it does not say."""
    try:
        done = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=True)
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise JobError(f"{python} does not say which packages it has: {error}") from error
    if not isinstance(answer, dict) or not all(isinstance(release, str) for release in answer.values()):
        raise JobError(f"{python} does not say which packages it has")
    return answer
