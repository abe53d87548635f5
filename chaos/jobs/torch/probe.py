"""The probe of PyTorch in the environment that would run a job."""

from __future__ import annotations

import re

from chaos.machine.probe import Machine, Probe

FIRST = (2, 1)
"""The first supported version: the oldest that a release of torch_npu in use builds on."""


def torch(machine: Machine) -> Probe:
    """Return whether a supported PyTorch is installed, by its metadata; of which build does not matter."""
    version = machine.version("torch")
    first = ".".join(map(str, FIRST))
    if version is None:
        advice = "install it with `pip install 'chaos-ascend[torch]'`, or the build for your devices"
        return Probe("torch", False, "not installed", f"{advice}; chaos supports PyTorch {first} and later")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return Probe("torch", numbers >= FIRST, version, "" if numbers >= FIRST else f"install PyTorch {first} or later")
