"""The losses of a run beside the losses of its fault-free run."""

from __future__ import annotations

from pathlib import Path

from chaos.evidence.facts import TRAIN
from chaos.live.events import NewEvents
from chaos.live.ranks import Process, number
from chaos.live.state import LossState
from chaos.plan.model import Plan


class Losses:
    """The last loss of the first rank whose loss is valid; the fault-free run is read once."""

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        self.rank = 0 if plan.layout.loss_ranks is None else plan.layout.loss_ranks[0]
        self._history = run_dir / "baseline" / "history"
        self._baseline: dict[int, float] | None = None

    def state(self, ranks: list[Process], last: LossState | None) -> LossState | None:
        """Return the last loss, which may be of the launch before this one."""
        latest = ranks[self.rank].loss if 0 <= self.rank < len(ranks) else None
        if latest is None:
            return last
        step, loss = latest
        return LossState(self.rank, step, loss, self._by_step().get(step))

    def _by_step(self) -> dict[int, float]:
        if self._baseline is None and (self._history.parent / "source.json").is_file():  # the copy is whole
            self._baseline = {}
            for event in NewEvents(self._history, only=f"{TRAIN}-rank_{self.rank}-").read():
                step, loss = event.data.get("step"), number(event.data.get("loss"))
                if event.event == "digest" and isinstance(step, int) and loss is not None:
                    self._baseline[step] = loss
        return self._baseline or {}
