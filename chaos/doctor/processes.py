"""Features of the kernel to hold, signal and collect processes."""

from __future__ import annotations

import ctypes
import os

from chaos.base.clock import BootUnknown, boot_id
from chaos.machine.probe import Machine, Probe

_PR_GET_CHILD_SUBREAPER = 37


def pidfd(_: Machine) -> Probe:
    """Return whether a process can be signalled without a race, and distinguished from a later one of the same PID."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return Probe("pidfd", False, str(error), "Linux 5.3 or later is needed to signal a process without a race")
    try:
        boot_id()
    except BootUnknown as error:
        return Probe("pidfd", False, str(error), "in a container, let /proc/sys be mounted")
    return Probe("pidfd", True, "works")


def subreaper(_: Machine) -> Probe:
    """Return whether the processes of a job can be collected."""
    value = ctypes.c_int()
    try:
        status = ctypes.CDLL(None, use_errno=True).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    except (AttributeError, OSError) as error:
        return Probe("subreaper", False, str(error), "Linux is needed to collect the processes of a job")
    if status != 0:
        return Probe("subreaper", False, os.strerror(ctypes.get_errno()), "a sandbox forbids prctl; allow it")
    return Probe("subreaper", True, "works")
