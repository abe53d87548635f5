"""A disk whose quota is used up: made, proven and put back with the kernel's own means."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.doctor import Machine, probe
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.storage.disk_quota import KIND
from chaos.machine.job.local import LocalJob
from chaos.machine.linux.mounts import mounts_at
from chaos.store.directory import RunDirectory
from tests.contract.proven_kinds import Sample
from tests.unit.faults.conftest import Undo

SAMPLE = Sample({"signal": None, "mount": "/dev/loop0 ext4 (rw)", "refused": "ENOSPC"})

LACKING = [f"{result.need}: {result.seen}" for result in probe(KIND.needs, Machine()) if not result.ok]
needs_a_disk = pytest.mark.skipif(bool(LACKING), reason=", ".join(LACKING))


@pytest.fixture
def disk(run: RunDirectory, storage: Path, undo: Undo) -> Path:
    """The directory on a disk of its own, which is taken away again."""
    (step,) = KIND.prepare_steps("quota", storage)
    run.ledger.record(step)
    KIND.prepare(storage)
    return storage


@needs_a_disk
@pytest.mark.parametrize("kilobytes", [64, 1024])
def test_a_save_breaks_off_at_the_limit_and_undo_lifts_it(
    run: RunDirectory, job: LocalJob, victim: Victim, disk: Path, undo: Undo, kilobytes: int
) -> None:
    victim = replace(victim, parameters={"kilobytes": kilobytes})
    (disk / "before").write_bytes(bytes(100 << 10))
    assert KIND.evidence(job, victim) is None
    KIND.inject(job, victim)
    KIND.inject(job, victim)  # for a second rank that saves there
    found = KIND.evidence(job, victim)
    assert found is not None and found["refused"] == "ENOSPC" and "ext4" in found["mount"]
    with pytest.raises(OSError) as raised, (disk / "half").open("wb", buffering=0) as file:
        for _ in range(kilobytes):
            file.write(bytes(4 << 10))
    assert raised.value.errno == errno.ENOSPC
    half = (disk / "half").stat().st_size
    assert 0 < half <= kilobytes << 10

    (step,) = run.ledger.open_steps()
    assert undo(run, step) == f"unmounted {disk}, 2 entries kept"
    assert mounts_at(disk) == []
    assert (disk / "half").stat().st_size == half
    (disk / "more").write_bytes(bytes(4 * kilobytes << 10))


def test_a_disk_that_is_not_the_jobs_own_is_not_limited(job: LocalJob, victim: Victim, storage: Path) -> None:
    storage.mkdir()
    with pytest.raises(FaultMissed, match="not a disk of its own"):
        KIND.inject(job, victim)
