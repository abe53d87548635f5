"""Mounts in the mount namespace of another process, and in no other (mount_namespaces(7)): a container's own."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from chaos.machine.linux.procfs import PROC

T = TypeVar("T")

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_FS = 0x00000200
_CLONE_NEWNS = 0x00020000


def do_in(pid: int, act: Callable[[], T]) -> T:
    """Call ``act`` in the mount namespace of a process, where paths resolve as that process sees them.

    A thread started for this call alone enters the namespace. Raises what ``act`` raises, and OSError: without the
    right to enter, when the process has ended, and when its namespace is this process's own, in which nothing is ever
    mounted.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def act_there() -> None:
        try:
            _enter(pid)
            done.append(act())
        except BaseException as error:
            failed.append(error)

    there = threading.Thread(target=act_there, name="mount-namespace")
    there.start()
    there.join()
    if failed:
        raise failed[0]
    return done[0]


def _enter(pid: int) -> None:
    descriptor = os.open(PROC / str(pid) / "ns" / "mnt", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_ino == (PROC / "self" / "ns" / "mnt").stat().st_ino:
            raise OSError(f"process {pid} has no mount namespace of its own")
        for name, arguments in (("unshare", (_CLONE_FS,)), ("setns", (descriptor, _CLONE_NEWNS))):
            if getattr(_LIBC, name)(*arguments) != 0:
                code = ctypes.get_errno()
                raise OSError(code, f"{name}: {os.strerror(code)}")
    finally:
        os.close(descriptor)
