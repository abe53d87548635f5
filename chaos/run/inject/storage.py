"""The directory that a job saves in: where it is, and getting it ready for faults before the job is started."""

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
    """The directory, absolute and without links, as the kernel lists what is mounted on it. None if it is not known."""
    return None if traits.storage is None else job.resolve() / traits.storage


def prepare_faults(
    faults: Iterable[PlannedFault], kinds: Mapping[str, FaultKind], storage: Path | None, ledger: Ledger
) -> None:
    """Prepare what faults need before the job is started; how to put it back is on disk before. Raises Refused."""
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
