"""The common part of storage faults: the directory that a job saves in, and a rank's view of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.mounts import Mount, mounts_at
from chaos.machine.linux.process import has_ended

UNMOUNT = "unmount-storage"
"""The undo action (chaos.faults.storage.undo)."""

PROBE = ".chaos-probe"
"""Name of the file that tests whether a file can be made; ``heal`` knows it (chaos.heal.interrupted_acts)."""

FROM_START = "works on the directory that the job saves its checkpoints in, which the job of a scenario tells"
"""The reason why such a fault cannot be made in a job that runs already."""


def directory_of(victim: Victim) -> Path:
    """Return the directory that the victim's job saves in. Raises FaultMissed when the job kind does not say."""
    if victim.storage is None:
        raise FaultMissed(f"rank {victim.rank}: this kind of job does not say where it saves its checkpoints")
    return victim.storage


def unmount_step(fault: str, directory: Path, note: str) -> UndoStep:
    """Return the step that takes the fault's mount away again."""
    return UndoStep(f"{fault}-storage", fault, UNMOUNT, {"path": str(directory)}, note)


def top_mount(job: Job, victim: Victim) -> Mount | None:
    """Return the mount that the victim's own process sees there, by the kernel. Raises FaultMissed if it has ended."""
    try:
        mounts = mounts_at(directory_of(victim), victim.identity.pid)
    except OSError as error:
        raise FaultMissed(f"rank {victim.rank} has ended: what it sees mounted cannot be read") from error
    if has_ended(job.state(victim.identity)):
        raise FaultMissed(f"rank {victim.rank} has ended")
    return mounts[-1] if mounts else None


def refusal(victim: Victim, size: int) -> str | None:
    """Return the name of the error with which the kernel refuses a file of ``size`` bytes there, None if it does not.

    The file has no name and is gone when this returns. The directory is reached as the victim's process sees it.
    """
    directory = f"/proc/{victim.identity.pid}/root{directory_of(victim)}"
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        return _name(error)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        return _name(error)
    finally:
        os.close(descriptor)
    return None


def refusal_of_name(victim: Victim) -> str | None:
    """Return the same of a file with a name."""
    return name_refused(directory_of(victim), victim.identity.pid)


def name_refused(directory: Path, pid: int) -> str | None:
    """Return the same of a file with a name in a directory, as a process of this host sees it."""
    path = f"/proc/{pid}/root{directory}/{PROBE}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as error:
        return _name(error)
    Path(path).unlink()
    return None


def shown(mount: Mount, refused: str) -> dict[str, Any]:
    """Return the evidence: the mount that the rank's process sees, and the kernel's refusal."""
    return {"signal": None, "mount": str(mount), "refused": refused}


def _name(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, str(error))
