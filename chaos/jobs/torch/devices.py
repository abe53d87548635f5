"""The GPUs that PyTorch sees, and their probe. They were never seen: no test of chaos has run on a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from chaos.jobs.kind import JobError
from chaos.machine.probe import Machine, Probe

GPU = "GPU"
"""The device of a scenario (``job.device``) that PyTorch calls ``cuda``."""

NO_GPU = "run it where torch.cuda.is_available() is true, or leave job.device out"

_SECONDS = 120.0
"""Time for ``import torch`` and the first question to a driver."""

_ASK = """
import json, torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps([torch.cuda.get_device_name(number) for number in range(count)]))
"""


@cache
def devices(python: Path) -> tuple[str, ...]:
    """Return the names of the GPUs that the PyTorch of an interpreter sees. Raises JobError where it does not say."""
    try:
        done = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=True)
        names = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise JobError(f"{python} does not say which GPUs its PyTorch sees: {error}") from error
    if not isinstance(names, list):
        raise JobError(f"{python} does not say which GPUs its PyTorch sees")
    return tuple(map(str, names))


def described(names: Sequence[str]) -> str:
    """Return the GPUs in words."""
    kinds = ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))
    return f"PyTorch sees {kinds}" if names else "PyTorch sees no GPU"


def gpus_of(python: Path | None) -> str:
    """Return the GPUs that an interpreter's PyTorch sees here, in words; of None, that of the harness."""
    try:
        return described(devices(python or Path(sys.executable)))
    except JobError:
        return "not known here"


def gpu(machine: Machine) -> Probe:
    """Return whether PyTorch sees a GPU. A build for the CPU is not asked."""
    version = machine.version("torch")
    if version is None:
        return Probe("gpu", False, "no PyTorch", NO_GPU)
    if version.endswith("+cpu"):
        return Probe("gpu", False, f"PyTorch {version} is a build for the CPU", NO_GPU)
    try:
        names = devices(machine.executable)
    except JobError as error:
        return Probe("gpu", False, str(error), NO_GPU)
    return Probe("gpu", bool(names), described(names), "" if names else NO_GPU)
