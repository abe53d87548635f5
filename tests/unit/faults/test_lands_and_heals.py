"""Faults of storage and resources land with the kernel's own evidence, are put back, and are healed after SIGKILL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import registry
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.behaviours import Lasting, Preparing, StillShown
from chaos.faults.beside.client import DIRECTORY, is_held, report_of, switch_of
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.storage import own_disk
from chaos.faults.storage.storage import refusal, refusal_of_name
from chaos.heal.heal import heal_run
from chaos.heal.undo import in_order
from chaos.machine.job.local import LocalJob
from chaos.machine.job.processes import find_run_processes
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.commands import SystemCommands
from chaos.machine.linux.disk_image import make_image, mount_image, thaw
from chaos.machine.linux.mounts import mounts_at, mounts_in, unmount
from chaos.machine.linux.process import has_ended
from chaos.store.directory import RunDirectory
from tests.kit.spread import spread
from tests.unit.faults.conftest import Undo, started

pytestmark = pytest.mark.processes

GIVEN: dict[str, dict[str, Any]] = {
    "io-error": {},
    "storage-gone": {},
    "no-permission": {},
    "slow-storage": {"delay": 0.05},
    "storage-stall": {"seconds": 5},
    "cpu-load": {"processes": 2},
    "cpu-quota": {"cores": 0.05},
    "fd-limit": {"spare": 8},
    "freeze": {"seconds": 1},
    "memory-load": {"megabytes": 8},
}
"""Each kind with its parameters."""

BUSY = ("sh", "-c", "while :; do :; done")
"""What the rank does; it must use processor time, or no quota can be felt."""


def kind_of(name: str) -> FaultKind:
    """The kind, if this machine can make it."""
    kind: FaultKind = registry("faults").load(name)
    missing = [result for result in probe(kind.needs, Machine()) if not result.ok]
    if missing:
        pytest.skip(f"{name} needs {missing[0].need}: {missing[0].seen}")
    return kind


@pytest.fixture
def job(run: RunDirectory, storage: Path, tmp_path: Path) -> Iterator[LocalJob]:
    spec = LaunchSpec(run.token, "train", BUSY, {"PATH": "/usr/bin:/bin"}, tmp_path, tmp_path / "log")
    job = started(spec)
    yield job
    if mounts_at(storage):
        thaw(storage)
    job.stop(0)
    while mounts_at(storage):
        unmount(storage)


def victim_of(name: str, run: RunDirectory, job: LocalJob, storage: Path) -> Victim:
    record = run.path / "history" / "train-rank_0-1.jsonl"
    return Victim(0, job.launcher, record, storage=storage, fault="first", parameters=GIVEN[name])


def lay(kind: FaultKind, run: RunDirectory, job: LocalJob, victim: Victim) -> dict[str, Any]:
    """Prepare it, write its steps down, make it, and wait for the evidence."""
    assert victim.storage is not None
    if isinstance(kind, Preparing):
        for step in kind.prepare_steps("first", victim.storage):
            run.ledger.record(step)
        kind.prepare(victim.storage)
    for step in kind.undo_steps("first", [victim]):
        run.ledger.record(step)
    kind.inject(job, victim)
    return wait_for("evidence", lambda: kind.evidence(job, victim), seconds=60, clock=SYSTEM_CLOCK)


def is_as_before(run: RunDirectory, job: LocalJob, storage: Path) -> None:
    """The rank lives and can save there, and nothing of a fault is left."""
    assert job.state(job.launcher) == "alive"
    storage.mkdir(exist_ok=True)
    victim = Victim(0, job.launcher, run.path / "history" / "x", storage=storage)
    assert (refusal(victim, 1), refusal_of_name(victim)) == (None, None)
    nothing_is_left(run)


def nothing_is_left(run: RunDirectory) -> None:
    assert mounts_in(run.path.resolve()) == []
    assert not (run.path / DIRECTORY).exists()
    assert [path.name for path in (run.path / "job").iterdir()] in ([], ["check points"])
    # Groups of others come and go while this looks: a walk passes over what has gone, a glob fails at it.
    groups = [name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names]
    assert [name for name in groups if name.startswith(f"chaos-{run.token}-")] == []


def test_a_disk_is_the_jobs_own_by_the_file_behind_it_alone(storage: Path, tmp_path: Path) -> None:
    kind = kind_of("storage-stall")
    assert isinstance(kind, Preparing)
    other = tmp_path / "other"
    other.mkdir()
    make_image(tmp_path / "image", 64 << 20, SystemCommands())
    try:
        kind.prepare(storage)
        mount_image(tmp_path / "image", other)
        (own,), (foreign,) = mounts_at(storage), mounts_at(other)
        assert own_disk.is_own(own, storage)
        assert not own_disk.is_own(own, other)
        assert not own_disk.is_own(foreign, other)
        assert not own_disk.is_own(foreign, storage)
    finally:
        for point in (storage, other):
            for _ in mounts_at(point):
                unmount(point)


def test_to_look_whether_a_stall_has_ended_freezes_nothing(
    run: RunDirectory, job: LocalJob, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thaw step is closed by then: nobody would thaw what is left frozen when the harness is killed."""
    kind = kind_of("storage-stall")
    assert isinstance(kind, Lasting)
    (run.path / "history").mkdir(exist_ok=True)
    victim = victim_of("storage-stall", run, job, storage)
    lay(kind, run, job, victim)
    thaw(storage)

    def frozen(*_: object) -> bool:
        raise AssertionError("frozen to look at it")

    monkeypatch.setattr("chaos.faults.storage.storage_stall.freeze", frozen)
    monkeypatch.setattr("chaos.machine.linux.disk_image.freeze", frozen)
    assert kind.ended(job, victim)
    unmount(storage)
    assert kind.ended(job, victim)


def test_what_was_saved_is_kept_though_somebody_else_still_has_the_disk_mounted(
    run: RunDirectory, job: LocalJob, storage: Path, undo: Undo
) -> None:
    """Whoever makes a mount namespace meanwhile, for a container say, takes a copy of the mount with it."""
    kind = kind_of("storage-stall")
    (run.path / "history").mkdir(exist_ok=True)
    lay(kind, run, job, victim_of("storage-stall", run, job, storage))
    thaw(storage)
    holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", "echo held; exec sleep 1000"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        (storage / "saved").write_bytes(b"x" * 100_000)
        for step in in_order(run.ledger.open_steps()):
            undo(run, step)
        assert mounts_at(storage) == []
        assert (storage / "saved").read_bytes() == b"x" * 100_000
    finally:
        holder.kill()
        holder.communicate()


@pytest.mark.parametrize("name", GIVEN)
def test_it_lands_with_evidence_and_is_put_back(
    name: str, run: RunDirectory, job: LocalJob, storage: Path, undo: Undo
) -> None:
    kind = kind_of(name)
    (run.path / "history").mkdir(exist_ok=True)
    victim = victim_of(name, run, job, storage)
    before = job.state(victim.identity), sorted(os.sched_getaffinity(victim.identity.pid))
    shown = lay(kind, run, job, victim)
    assert json.loads(json.dumps(shown)) == shown
    kind.inject(job, victim) if name not in (
        "fd-limit",
        "freeze",
        "cpu-quota",
    ) else None  # a second rank hit by the same fault
    steps = in_order(run.ledger.open_steps())
    assert steps
    if isinstance(kind, Lasting):
        assert not kind.ended(job, victim)
    for step in steps:
        undo(run, step)
    if isinstance(kind, Lasting):
        assert kind.ended(job, victim)
    is_as_before(run, job, storage)
    assert (job.state(victim.identity), sorted(os.sched_getaffinity(victim.identity.pid))) == before
    for step in steps:
        undo(run, step)  # may run twice


@pytest.mark.parametrize("name", GIVEN)
def test_a_rank_that_has_ended_is_not_hit(name: str, run: RunDirectory, job: LocalJob, storage: Path) -> None:
    kind = kind_of(name)
    (run.path / "history").mkdir(exist_ok=True)
    victim = victim_of(name, run, job, storage)
    job.stop(0)
    with pytest.raises((FaultMissed, LookupError, ProcessLookupError)):
        kind.undo_steps("first", [victim])
        kind.inject(job, victim)
    nothing_is_left(run)


HARNESS = """
import os, signal, sys
from pathlib import Path
from chaos.history.ledger import Ledger
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.job.local import LocalPlatform
from chaos.base.registry import registry
from chaos.store.key import seal_of
from tests.unit.faults.test_lands_and_heals import BUSY, lay, victim_of
from types import SimpleNamespace

name, token, path, storage = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
spec = LaunchSpec(token, "train", BUSY, {"PATH": "/usr/bin:/bin"}, path, path / "log")
run = SimpleNamespace(path=path, ledger=Ledger(path / "undo.jsonl", seal_of(token)))
job = LocalPlatform().start(spec)
shown = lay(registry("faults").load(name), run, job, victim_of(name, run, job, storage))
print(job.launcher.pid, shown, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("name", spread(tuple(GIVEN), 3))
def test_heal_puts_it_back_after_the_harness_was_killed(name: str, run: RunDirectory, storage: Path) -> None:
    kind_of(name)
    (run.path / "history").mkdir(exist_ok=True)
    run.lock.release()
    command = [sys.executable, "-c", HARNESS, name, run.token, str(run.path), str(storage)]
    killed = subprocess.run(command, cwd=Path.cwd(), capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout
    report = heal_run(run.path)
    assert report.outcome == "healed", report
    nothing_is_left(run)
    assert find_run_processes(run.token) == []
    assert heal_run(run.path).outcome == "nothing"


@pytest.mark.parametrize("name", ["cpu-load", "cpu-quota", "fd-limit", "memory-load", "slow-storage"])
def test_a_condition_is_shown_until_what_it_lies_on_has_gone(
    name: str, run: RunDirectory, job: LocalJob, storage: Path, undo: Undo
) -> None:
    """The load of a machine and a slow storage are there when the rank has ended; a limit has ended with it."""
    kind, victim = kind_of(name), victim_of(name, run, job, storage)
    assert isinstance(kind, StillShown)
    landed = lay(kind, run, job, victim)
    assert (kind.still(job, victim) or {}).keys() <= landed.keys()
    assert not kind.gone(job, victim)
    job.signal(job.launcher, signal.SIGKILL)
    wait_for("end", lambda: has_ended(job.state(job.launcher)), seconds=30, clock=SYSTEM_CLOCK)
    assert kind.gone(job, victim) == (kind.look_every is not None) == (name in ("cpu-quota", "fd-limit"))
    if not kind.gone(job, victim):
        assert (kind.still(job, victim) or {}).keys() == landed.keys()
    for step in in_order(run.ledger.open_steps()):
        undo(run, step)


@pytest.mark.parametrize("name", ["cpu-load", "memory-load"])
def test_a_load_that_has_ended_by_itself_is_not_shown(
    name: str, run: RunDirectory, job: LocalJob, storage: Path, undo: Undo
) -> None:
    kind, victim = kind_of(name), victim_of(name, run, job, storage)
    assert isinstance(kind, StillShown)
    lay(kind, run, job, victim)
    message = report_of(victim)
    assert message is not None
    os.kill(message["pid"], signal.SIGKILL)
    wait_for("end", lambda: not is_held(switch_of(victim)), seconds=30, clock=SYSTEM_CLOCK)
    assert kind.still(job, victim) is None
    job.signal(job.launcher, signal.SIGKILL)
    assert kind.still(job, victim) is None
    for step in in_order(run.ledger.open_steps()):
        undo(run, step)
