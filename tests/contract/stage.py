"""A rank that a fault is noted, made and undone on: a process of this host, its files and what limits it."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.doctor import Machine, probe
from chaos.faults.behaviours import Preparing
from chaos.faults.beside.client import DIRECTORY, is_held
from chaos.faults.example import example
from chaos.faults.kind import FaultKind, Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, Undone, healable, in_order, undo_step
from chaos.history.ledger import UndoStep
from chaos.machine.job.local import LocalJob
from chaos.machine.job.protocol import Job, LaunchSpec
from chaos.machine.linux.disk_image import thaw
from chaos.machine.linux.mounts import mounts_at, unmount
from chaos.machine.linux.permissions import directories_in, is_immutable
from chaos.machine.linux.process import has_ended
from chaos.store.directory import RunDirectory
from tests.kit.checkpoints.saved_checkpoints import save
from tests.unit.faults.conftest import started

RANK = 1


def parameters_of(kind: FaultKind) -> dict[str, Any]:
    """Those of the kind's example."""
    (fault,) = [candidate for candidate in example(kind, RANK, 2)["faults"] if candidate["kind"] == kind.name]
    return dict(fault.get("parameters", {}))


@dataclass
class Stage:
    """A rank, and what it lives in. ``not_made`` says why a fault of this kind cannot be made here, if it cannot."""

    kind: FaultKind
    run: RunDirectory
    victim: Victim
    job: Job
    context: UndoContext
    seen: Callable[[], dict[str, Any]]
    end_job: Callable[[], object] = lambda: None
    not_made: str = ""
    steps: list[UndoStep] = field(default_factory=list, init=False)

    def noted(self) -> list[UndoStep]:
        """The steps of the fault, in the ledger before it is made. Raises CannotUndo where one has no action."""
        before = []
        if isinstance(self.kind, Preparing) and self.victim.storage is not None:
            before = self.kind.prepare_steps(self.kind.name, self.victim.storage)
        steps = healable([*before, *self.kind.undo_steps(self.kind.name, [self.victim])])
        self.steps = [self.run.ledger.record(step) for step in steps]
        return self.steps

    def make(self) -> None:
        """Make it, as a run does."""
        if isinstance(self.kind, Preparing) and self.victim.storage is not None:
            self.kind.prepare(self.victim.storage)
        self.kind.inject(self.job, self.victim)

    def undo(self, steps: list[UndoStep]) -> list[Undone]:
        """Undo them, the last first."""
        return [undo_step(self.run.ledger, step, UNDO_ACTIONS, self.context) for step in in_order(reversed(steps))]


@contextmanager
def local(kind: FaultKind, run: RunDirectory, command: tuple[str, ...] = ("sleep", "1000")) -> Iterator[Stage]:
    """A process of this host, which saves below the run's directory."""
    root = run.path.resolve()
    storage = root / "job" / "checkpoints"
    save(storage)
    (storage / f"rank_{RANK}" / "meta.json").write_text(
        '{"last_epoch": 1, "last_step": 8, "last_ckpt_file": "plain-1_8.ckpt"}'
    )
    record = root / "history" / f"train-rank_{RANK}-7.jsonl"
    record.parent.mkdir(exist_ok=True)
    record.touch()
    environment = {"PATH": "/usr/bin:/bin", "RANK_ID": str(RANK), "MS_ROLE": "MS_WORKER"}
    job = started(LaunchSpec(run.token, "train", command, environment, root, root / "log"))
    victim = Victim(
        RANK,
        job.launcher,
        record,
        answer=lambda message: None,
        storage=storage,
        fault=kind.name,
        ranks=(RANK,),
        parameters=parameters_of(kind),
        tell_controller=lambda message: True,
    )

    def seen() -> dict[str, Any]:
        beside = [str(path) for path in sorted((root / DIRECTORY).rglob("*")) if path.is_file() and is_held(path)]
        return {"mounts": mounts_at(storage), "beside": beside, **_saved(storage), **_process(job)}

    lacking = [f"{result.need}: {result.seen}" for result in probe(kind.needs, Machine()) if not result.ok]
    context = UndoContext(run.token, SYSTEM_CLOCK)
    stage = Stage(kind, run, victim, job, context, seen, lambda: job.stop(0), ", ".join(lacking))
    try:
        yield stage
    finally:  # a test that has failed leaves nothing on the machine either
        job.stop(0)
        stage.undo(stage.steps)
        if mounts_at(storage):
            thaw(storage)
        while mounts_at(storage):
            unmount(storage)


def _saved(storage: Path) -> dict[str, Any]:
    files = [path for path in sorted(storage.rglob("*")) if path.is_file()]
    closed = [str(path) for path in directories_in(storage) if _is_closed(path)]
    saved = {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}
    return {"files": saved, "closed": closed, "mode": storage.stat().st_mode}


def _is_closed(directory: Path) -> bool:
    try:
        return is_immutable(directory)
    except OSError:  # a file system that knows no such flag
        return False


def _process(job: LocalJob) -> dict[str, Any]:
    """What the kernel says of the rank's process; nothing where the job has been ended."""
    pid, state = job.launcher.pid, job.state(job.launcher)
    if has_ended(state):
        return {}
    groups = Path(f"/proc/{pid}/cgroup").read_text()
    return {"state": state, "limits": resource.prlimit(pid, resource.RLIMIT_NOFILE), "groups": groups}
