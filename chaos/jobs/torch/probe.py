"""The probes of PyTorch: in the environment that would run a job, and in an interpreter that a scenario names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from chaos.jobs.kind import JobError
from chaos.jobs.torch.devices import GPU, NO_GPU, described, devices
from chaos.jobs.torch.interpreter import OLDEST, interpreter, releases
from chaos.jobs.torch.release import numbers_of
from chaos.jobs.torch.stores import told
from chaos.machine.probe import Machine, Probe
from chaos.scenario.models.scenario import Scenario

FIRST = (2, 1)
"""The first supported version: the oldest that a release of torch_npu in use builds on."""


def torch(machine: Machine) -> Probe:
    """Return whether a supported PyTorch is installed, by its metadata; of which build does not matter."""
    return torch_probe(machine.version("torch"))


def torch_probe(version: str | None) -> Probe:
    """Return whether a version of PyTorch will do, None where there is none, and what its torchrun does."""
    first = ".".join(map(str, FIRST))
    if version is None:
        advice = "install it with `pip install 'chaos-ascend[torch]'`, or the build for your devices"
        return Probe("torch", False, "not installed", f"{advice}; chaos supports PyTorch {first} and later")
    numbers = numbers_of(version)
    if numbers < FIRST:
        return Probe("torch", False, version, f"install PyTorch {first} or later")
    return Probe("torch", True, f"{version}; {told(version)}")


def interpreter_probe(scenario: Scenario, directory: Path, packages: Collection[str] = ("torch",)) -> Probe | None:
    """Return whether the interpreter that a scenario in ``directory`` names runs its ranks; None where it names none.

    It is asked for the releases of itself, of PyTorch and of numpy. ``packages`` are the packages that it needs.
    """
    oldest = ".".join(map(str, OLDEST))
    need = f"job.python {scenario.job.python}"
    try:
        if (python := interpreter(scenario, directory)) is None:
            return None
        need, found = f"job.python {python}", releases(python)
    except JobError as error:
        return Probe(need, False, str(error), "name a Python with PyTorch in it")
    release = found.get("python", "")
    if numbers_of(release) < OLDEST:
        return Probe(need, False, f"{python} is Python {release}, and the agent needs {oldest}", "name a later one")
    torch_found = torch_probe(found.get("torch"))
    if not torch_found.ok:
        first = ".".join(map(str, FIRST))
        return Probe(need, False, f"{python}: PyTorch: {torch_found.seen}", f"{first} and later will do")
    if lacking := sorted(name for name in packages if name not in found):
        names = ", ".join(lacking)
        return Probe(need, False, f"{python} has no {names}", f"install {names} there")
    numpy = f", numpy {found['numpy']}" if "numpy" in found else ""
    seen = f"Python {release}{numpy}, PyTorch {torch_found.seen}"
    if scenario.job.device != GPU:
        return Probe(need, True, seen)
    try:
        gpus = devices(python)
    except JobError as error:
        return Probe(need, False, str(error), NO_GPU)
    return Probe(need, bool(gpus), f"{seen}; {described(gpus)}", "" if gpus else NO_GPU)
