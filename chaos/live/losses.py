"""The losses of a run beside the losses of its fault-free run."""

from __future__ import annotations

from pathlib import Path

from chaos.evidence.facts import TRAIN
from chaos.evidence.text import readable
from chaos.live.events import NewEvents
from chaos.live.logged_losses import LoggedLoss
from chaos.live.ranks import Ranks, number
from chaos.live.state import LossState
from chaos.plan.model import Plan


class Losses:
    """The last loss of the first rank whose loss is valid; the fault-free run is read once.

    Where the agent of the rank has recorded no loss, the rank's own log has the loss, as in the report.
    """

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        self.rank = 0 if plan.layout.loss_ranks is None else plan.layout.loss_ranks[0]
        self.problems: tuple[str, ...] = ()
        self._history = run_dir / "baseline" / "history"
        self._baseline: dict[int, float] | None = None
        self._log: LoggedLoss | None = LoggedLoss(run_dir, self.rank)

    def state(self, ranks: Ranks, last: LossState | None) -> LossState | None:
        """Return the last loss, which may be of the launch before this one."""
        latest = ranks.all[self.rank].loss if 0 <= self.rank < len(ranks.all) else None
        if latest is not None:
            if self._log is not None:  # what its agent records is exact
                self._log, self._baseline = None, None
            return LossState(self.rank, *latest, self._by_step().get(latest[0]))
        if self._log is None or not ranks.attempt:
            return last
        try:
            logged = self._log.last(ranks.attempt)
            if logged is None:
                return last
            return LossState(self.rank, *logged, self._by_step(by_log=True).get(logged[0]), by_log=True)
        except Exception as error:  # readers of other packages too
            reason = f"the losses in the log of rank {self.rank} cannot be read: {type(error).__name__}: {error}"
            self._log, self.problems = None, (readable(reason),)
            return last

    def _by_step(self, *, by_log: bool = False) -> dict[int, float]:
        """Return the losses of the fault-free run by their steps; ``by_log`` those of its log, too."""
        if self._baseline is None and (self._history.parent / "source.json").is_file():  # the copy is whole
            self._baseline = {}
            for event in NewEvents(self._history, only=f"{TRAIN}-rank_{self.rank}-").read():
                step, loss = event.data.get("step"), number(event.data.get("loss"))
                if event.event == "digest" and isinstance(step, int) and loss is not None:
                    self._baseline[step] = loss
            if by_log and self._log is not None:
                self._baseline |= self._log.of_baseline()
        return self._baseline or {}
