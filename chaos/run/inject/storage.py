"""The directory that a job saves in: its path, and its preparation for faults before the job is started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.faults.behaviours import Preparing
from chaos.faults.kind import FaultKind
from chaos.heal.undo import CannotUndo, healable
from chaos.history.ledger import Ledger
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.traits import JobTraits


def storage_of(job: Path, traits: JobTraits) -> Path | None:
    """Return the absolute directory without links, as the kernel lists its mounts. None if it is not known."""
    return None if traits.storage is None else job.resolve() / traits.storage


def prepare_faults(
    faults: Iterable[PlannedFault], kinds: Mapping[str, FaultKind], storage: Path | None, ledger: Ledger
) -> None:
    """Prepare faults before the job is started; their undo steps are on disk first. Raises Refused."""
    for fault in faults:
        kind = kinds[fault.kind]
        if not isinstance(kind, Preparing):
            continue
        if storage is None:
            raise Refused(
                f"fault {fault.id}: this kind of job does not say where it saves, so {fault.kind} cannot hit it"
            )
        try:
            steps = healable(kind.prepare_steps(fault.id, storage))
        except CannotUndo as error:
            raise Refused(f"fault {fault.id} ({fault.kind}): {error}") from error
        for step in steps:
            ledger.record(step)
        try:
            kind.prepare(storage)
        except OSError as error:
            raise Refused(f"fault {fault.id} ({fault.kind}): {storage} cannot be prepared: {error}") from error
