"""The replica groups of torchft: the vote on each step, and the state that a group gets from another one.

torchft numbers the steps: a group that has come back learns its step from the others. Its first forward run still has
the old weights; the other group's state takes their place before the vote (``Manager.should_commit`` of torchft 0.2).
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, Callable

from chaos.agent.after_import import AfterImport
from chaos.agent.torch.loop import TorchLoop
from chaos.agent.training import Training


class ReplicaGroup:
    """This process's replica group, by the manager that its script has made."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    @property
    def steps_done(self) -> int:
        """The number of steps that the groups have committed, as this group knows it."""
        return int(self._manager.current_step())

    def awaits_state(self) -> bool:
        """Return whether the state of this group is still to come from another one.

        A group whose quorum fails has no state that counts either; the script's own call raises the error.
        """
        try:
            self._manager.wait_quorum()
        except Exception:  # of any kind: the script asks the manager itself next, and gets the error
            return True
        return bool(self._manager._healing)


def hook_replica_groups(imports: AfterImport, training: Training, loop: TorchLoop) -> None:
    """Arrange for the manager to be seen when its module is imported."""
    imports.watch("torchft.manager", functools.partial(_hook_manager, training, loop))


def _hook_manager(training: Training, loop: TorchLoop, module: ModuleType) -> None:
    manager_class: Any = module.Manager
    make: Callable[..., None] = manager_class.__init__
    vote: Callable[..., bool] = manager_class.should_commit

    @functools.wraps(make)
    def make_with_agent(manager: Any, *args: Any, **kwargs: Any) -> None:
        make(manager, *args, **kwargs)
        loop.group = ReplicaGroup(manager)

    @functools.wraps(vote)
    def vote_with_agent(manager: Any, *args: Any, **kwargs: Any) -> bool:
        healing, before = bool(manager._healing), int(manager.current_step())
        committed = bool(vote(manager, *args, **kwargs))
        healed = healing and manager.errored() is None
        training.voted(
            step=before + 1,
            committed=committed,
            participants=manager.num_participants(),
            least=manager._min_replica_size,
            # The gradients of a group that gets its state are left out (Manager.is_participating).
            contributes=manager._participating_replica_rank is not None and not healing,
            healed=healed,
            quorum=manager._quorum_id,
            **({} if manager.errored() is None else {"error": str(manager.errored())[:200]}),
        )
        if healed:
            loop.healed(before)
        loop.voted(committed)
        return committed

    manager_class.__init__, manager_class.should_commit = make_with_agent, vote_with_agent
