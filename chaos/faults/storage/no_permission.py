"""``no-permission``: forbids the ranks to write in the checkpoint directory.

For unprivileged ranks the directory loses its mode (EACCES), for others, such as root's, it becomes immutable (EPERM).

On Ascend: a checkpoint path with another owner or the wrong mode.
"""

from __future__ import annotations

import stat
from typing import Any

from chaos.base.walking import raise_too_deep
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.storage.storage import FROM_START, directory_of, refusal
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.permissions import (
    CAP_DAC_OVERRIDE,
    directories_in,
    has_capability,
    is_immutable,
    set_immutable,
)
from chaos.machine.linux.process import has_ended
from chaos.plan.job_effect import STORAGE_DENIED

ALLOW = "allow-writing"
"""The undo action (chaos.faults.storage.undo)."""

_SHUT = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
"""A mode with which names can be listed, and no file can be reached."""


class NoPermission(FaultKind):
    """Takes the permission to write."""

    surface = "mounts"
    name = "no-permission"
    effect = STORAGE_DENIED
    needs_from_start = FROM_START
    needs = ("permissions",)

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Restore the directory's mode and flags."""
        path = directory_of(victims[0])
        path.mkdir(parents=True, exist_ok=True)
        arguments = {"path": str(path), "mode": stat.S_IMODE(path.stat().st_mode)}
        return [UndoStep(f"{fault}-permission", fault, ALLOW, arguments, f"allow writing in {path} again")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Take the permission, from top to bottom. A second victim in the directory changes nothing more."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        path = directory_of(victim)
        try:
            if not has_capability(victim.identity.pid, CAP_DAC_OVERRIDE):
                path.chmod(_SHUT)
                return
            for directory in directories_in(path, raise_too_deep):
                set_immutable(directory, True)
        except OSError as error:
            raise FaultMissed(f"the permission to write in {path} cannot be taken: {error}") from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the directory's state, and the kernel's refusal of a file there.

        Raises FaultMissed if the rank has ended.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        refused = refusal(victim, 1)
        if refused not in ("EACCES", "EPERM"):
            return None
        path = directory_of(victim)
        is_now = "immutable" if is_immutable(path) else f"mode {stat.S_IMODE(path.stat().st_mode):04o}"
        return {"signal": None, "directory": is_now, "refused": refused}


KIND = NoPermission()
