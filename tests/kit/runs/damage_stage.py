"""A run whose ranks have saved files of PyTorch, and a fault that damages one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.registry import registry
from chaos.faults.kind import Victim
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_step
from chaos.history.ledger import UndoStep
from chaos.history.writer import HistoryWriter
from chaos.machine.linux.process import identify
from chaos.store.directory import RunDirectory
from tests.kit.checkpoints.torch_dcp import job_directory
from tests.kit.checkpoints.torch_save import TorchSave, job_state

NO_JOB: Any = None


class Stage:
    """A run whose ranks have recorded their saves, and a fault that hits one of them."""

    def __init__(self, owned: RunDirectory, kind: str, rank: int = 0, **parameters: Any) -> None:
        self.owned, self.kind = owned, registry("faults").load(kind)
        self.job = owned.path.resolve() / "job"
        history = owned.path.resolve() / "history"
        history.mkdir(exist_ok=True)
        self.record = history / f"train-rank_{rank}-7.jsonl"
        self.victim = Victim(rank, identify(1), self.record, fault="hit", parameters=parameters)

    def saved(self, path: Path, step: int) -> None:
        """Record that the rank has saved a path."""
        self._record("checkpoint.end", kind="periodic", path=str(path), step=step)

    def left_out(self, step: int) -> None:
        """Record that a scaler of gradients has left out the update of a step."""
        self._record("update.left_out", step=step)

    def _record(self, event: str, **data: Any) -> None:
        resume = self.record.exists()
        history = HistoryWriter(self.record, writer="agent", run="torch", clock=SYSTEM_CLOCK, resume=resume)
        history.record(event, attempt="train", rank=self.victim.rank, pid=7, **data)
        history.close()

    def files(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.job)): path.read_bytes() for path in self.job.rglob("*") if path.is_file()}

    def hit(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Make the fault and undo it; return its evidence, and what lay there in between."""
        before = self.files()
        recorded, shown = self.damage()
        between = self.files()
        undone = undo_step(self.owned.ledger, recorded, UNDO_ACTIONS, UndoContext(self.owned.token, SYSTEM_CLOCK))
        assert undone.ok, undone.how
        assert self.files() == before
        return shown, between

    def damage(self) -> tuple[UndoStep, dict[str, Any]]:
        """Make the fault; return its recorded undo step, and its evidence."""
        (step,) = self.kind.undo_steps("hit", [self.victim])
        recorded = self.owned.ledger.record(step)
        assert self.kind.evidence(NO_JOB, self.victim) is None
        self.kind.inject(NO_JOB, self.victim)
        shown = self.kind.evidence(NO_JOB, self.victim)
        assert shown is not None
        return recorded, shown

    def landed(self, shown: dict[str, Any]) -> None:
        """Record that the fault has landed."""
        entry = {"rank": self.victim.rank, "pid": 7, **shown}
        path = self.record.with_name("harness.jsonl")
        with HistoryWriter(path, writer="harness", run="torch", clock=SYSTEM_CLOCK) as history:
            history.record(
                "fault.landed", attempt="train", fault="hit", kind=self.kind.name, ranks=[0], evidence=[entry]
            )


def files_of_rank_0(stage: Stage) -> None:
    """What a script of DDP leaves: rank 0 saves for all, under names of its own."""
    for step in (4, 8):
        stage.saved(TorchSave().write(stage.job / "checkpoints" / f"step-{step}.pt", job_state(step)), step)


def directories(stage: Stage) -> None:
    """What a script leaves that saves by torch.distributed.checkpoint."""
    for step in (4, 8):
        job_directory(step).write(stage.job / "ckpt" / f"step_{step}")
        stage.saved(stage.job / "ckpt" / f"step_{step}", step)
