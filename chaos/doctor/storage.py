"""The needs of storage faults: abilities of the kernel and of the user."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from chaos.faults.beside.slow_opens import watch_opens
from chaos.machine.linux.mounts import may_mount
from chaos.machine.linux.permissions import CAP_LINUX_IMMUTABLE, has_capability
from chaos.machine.probe import Machine, Probe


def mounts(_: Machine) -> Probe:
    """Return whether this user may mount file systems."""
    if may_mount():
        return Probe("mounts", True, "allowed")
    advice = "storage faults mount a file system over the checkpoint directory: run as root, or with CAP_SYS_ADMIN"
    return Probe("mounts", False, "not allowed", advice)


def loop(machine: Machine) -> Probe:
    """Return whether a disk can be made in a file."""
    tool = machine.tool("mkfs.ext4")
    if tool is None:
        return Probe("loop", False, "no mkfs.ext4", "install e2fsprogs: disk faults make a disk in a file")
    if not Path("/dev/loop-control").exists() or not may_mount():
        advice = "disk faults need loop devices and root: load the module loop, or give the container its devices"
        return Probe("loop", False, "no loop devices", advice)
    return Probe("loop", True, "loop devices and mkfs.ext4")


def fanotify(_: Machine) -> Probe:
    """Return whether opens of files can be held: tried with a directory that no other process opens."""
    try:
        with tempfile.TemporaryDirectory() as directory:
            os.close(watch_opens(directory, alone=True))
    except OSError as error:
        advice = "slow storage is made by the kernel's fanotify: root and CONFIG_FANOTIFY_ACCESS_PERMISSIONS are needed"
        return Probe("fanotify", False, str(error), advice)
    return Probe("fanotify", True, "opens can be held")


def permissions(machine: Machine) -> Probe:
    """Return whether this user can be kept out of a directory, by its mode or by making it immutable."""
    if machine.user() != 0:
        return Probe("permissions", True, f"user {machine.user()}: file modes can lock this user out")
    if has_capability("self", CAP_LINUX_IMMUTABLE):
        return Probe("permissions", True, "root: an immutable directory can lock it out")
    advice = "file modes do not lock root out, and making a directory immutable needs CAP_LINUX_IMMUTABLE"
    return Probe("permissions", False, "root without CAP_LINUX_IMMUTABLE", advice)
