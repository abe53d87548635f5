"""Basic facts of a machine: its Python, cores, memory, and writable directories."""

from __future__ import annotations

import os
import shutil

from chaos.machine.probe import GIB, Machine, Probe

_PACKAGE = "chaos-ascend"


def python(machine: Machine) -> Probe:
    """Return whether chaos supports this version of Python."""
    text = ".".join(map(str, machine.python))
    if machine.python >= (3, 10):
        return Probe("python", True, text)
    return Probe("python", False, text, "chaos needs Python 3.10 or later")


def command(machine: Machine) -> Probe:
    """Return whether the command ``chaos`` is there, and this package's alone.

    pip replaces another package's command without a word, and removes it with that package.
    """
    others = [name for name in machine.owners("chaos") if name != _PACKAGE]
    if not others:
        beside = str(machine.executable.parent)
        if machine.which("chaos", path=beside) is None and machine.which("chaos") is None:
            text = f"no command chaos in {beside} or on the PATH"
            again = f"pip install --force-reinstall --no-deps {_PACKAGE}"
            return Probe("command", False, text, f"call python -m chaos; if another package took it away: {again}")
        return Probe("command", True, "chaos, chaos-ascend")
    return Probe(
        "command",
        False,
        f"{others[0]} has a command chaos, too: the one that was installed last is called",
        "call chaos-ascend or python -m chaos; to give that package its command back: "
        f"pip install --force-reinstall --no-deps {others[0]}",
    )


def cores(machine: Machine) -> Probe:
    """Return whether there are enough cores for ranks beside the harness."""
    cores = machine.cores()
    return Probe("cores", cores >= 2, str(cores), "" if cores >= 2 else "with one core, runs may pass their deadlines")


def memory(machine: Machine) -> Probe:
    """Return whether four small ranks fit into the free memory."""
    free = machine.memory()
    enough = free >= 2 * GIB
    return Probe("memory", enough, f"{free / GIB:.1f} GiB available", "" if enough else "four ranks need about 2 GiB")


def shared_memory(machine: Machine) -> Probe:
    """Return whether files can be made in shared memory."""
    path = machine.shared_memory
    if not path.is_dir() or not os.access(path, os.W_OK):
        return Probe("shm", False, f"{path} cannot be written", f"mount a tmpfs at {path}")
    return Probe("shm", True, f"{path}, {shutil.disk_usage(path).free / GIB:.1f} GiB free")


def reports(machine: Machine) -> Probe:
    """Return whether runs can be written to their directory; make nothing."""
    path = machine.reports.absolute()
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Probe("reports", True, str(path))
    return Probe("reports", False, f"{path} cannot be written", "choose another directory with --reports")


def root(machine: Machine) -> Probe:
    """Return whether the user is root."""
    user = machine.user()
    advice = "" if user == 0 else "run chaos as root: only root may change a device with hccn_tool and npu-smi"
    return Probe("root", user == 0, "yes" if user == 0 else f"user {user}", advice)
