"""Packages in the environment that would run a job."""

from __future__ import annotations

import re
import subprocess

from chaos.machine.probe import Machine, Probe

MINDSPORE = ((2, 7), (2, 11))
"""Supported MindSpore versions: from the first, up to and without the second."""

_DEEP_SECONDS = 120.0


def mindspore(machine: Machine) -> Probe:
    """Return whether a supported MindSpore is installed, by its metadata."""
    version = machine.version("mindspore")
    first, end = (".".join(map(str, part)) for part in MINDSPORE)
    supported = f"chaos supports MindSpore {first} and later, below {end}"
    install = "install it with `pip install 'chaos-ascend[mindspore]'`, or your own build for Ascend"
    if version is None:
        if machine.has_module("mindspore"):
            return Probe("mindspore", False, "a module without metadata", f"{supported}; reinstall it with pip")
        return Probe("mindspore", False, "not installed", f"{install}; {supported}")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if MINDSPORE[0] <= numbers < MINDSPORE[1]:
        return Probe("mindspore", True, version)
    return Probe("mindspore", False, version, supported)


def numpy(machine: Machine) -> Probe:
    """Return whether numpy has a version that MindSpore works with."""
    version = machine.version("numpy")
    if version is None:
        return Probe("numpy", False, "not installed", "pip install 'numpy<2'")
    if int(version.split(".")[0]) < 2:
        return Probe("numpy", True, version)
    if machine.version("mindspore") is None:  # the harness itself works with any
        return Probe("numpy", True, f"{version}; MindSpore needs numpy below 2, which its extra installs")
    return Probe("numpy", False, version, "numpy 2 breaks MindSpore's Tensor.reshape; pip install 'numpy<2'")


def msrun(machine: Machine) -> Probe:
    """Return whether MindSpore's launcher belongs to this Python."""
    # msrun starts the `python` of the PATH, so only the one that belongs to this Python is of use.
    program = machine.which("msrun", path=str(machine.executable.parent))
    if program:
        return Probe("msrun", True, program)
    other = machine.which("msrun")
    observation = f"not beside {machine.executable}" + (f" (there is {other})" if other else "")
    return Probe("msrun", False, observation, "install MindSpore into the environment that chaos is installed in")


def mindio(machine: Machine) -> Probe:
    """Return whether the vendor's MindIO TFT is installed."""
    version = machine.version("mindio_ttp")
    if version or machine.has_module("mindio_ttp"):
        return Probe("mindio_ttp", True, version or "a module without metadata")
    advice = "it comes with the vendor's MindCluster; rehearsals use the stand-in"
    return Probe("mindio_ttp", False, "not installed", advice)


def mindformers(machine: Machine) -> Probe:
    """Return whether MindFormers is installed."""
    version = machine.version("mindformers")
    if version or machine.has_module("mindformers"):
        return Probe("mindformers", True, version or "a module without metadata")
    advice = (
        "pip install 'chaos-ascend[mindformers]', then its wheel with `pip install --no-deps mindformers` "
        "(docs/guides/mindformers.md in the repository), or name a checkout in the scenario (job.checkout)"
    )
    return Probe("mindformers", False, "not installed", advice)


def import_mindspore(machine: Machine) -> Probe:
    """Import MindSpore in a process of its own: slower than the metadata, but it also finds a broken installation."""
    command = [str(machine.executable), "-c", "import mindspore; print(mindspore.__version__)"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEEP_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Probe("mindspore import", False, f"took more than {_DEEP_SECONDS:g} s", "look for a hanging driver")
    if done.returncode == 0:
        return Probe("mindspore import", True, done.stdout.strip().rpartition("\n")[2])
    last = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
    return Probe("mindspore import", False, last, f"repair MindSpore: {' '.join(command[:2])} 'import mindspore'")
