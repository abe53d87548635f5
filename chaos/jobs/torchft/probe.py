"""The probe of torchft in the environment that would run a job."""

from __future__ import annotations

import re

from chaos.machine.probe import Machine, Probe

FIRST = (0, 2)
"""The first version whose manager the agent knows."""

_PACKAGES = ("torchft", "torchft-nightly")


def torchft(machine: Machine) -> Probe:
    """Return whether a supported torchft is installed, by its metadata: the release, or the nightly build."""
    found = {name: version for name in _PACKAGES if (version := machine.version(name)) is not None}
    if not found:
        advice = "install it without replacing your PyTorch (docs/guides/pytorch-jobs.md in the repository)"
        return Probe("torchft", False, "not installed", advice)
    name, version = next(iter(found.items()))
    # The version of a nightly build is its day.
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    advice = "" if numbers >= FIRST else f"install torchft {'.'.join(map(str, FIRST))} or later"
    return Probe("torchft", numbers >= FIRST, f"{name} {version}", advice)
