"""Defects of a job of PyTorch: the state that a process started again does not restore, its data, and its saves."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, replaces

_FILES, _OPTIMIZER = "torch.serialization", "torch.optim.optimizer"
_SCHEDULE, _SAMPLER = "torch.optim.lr_scheduler", "torch.utils.data.distributed"


def _started_again(agent: Agent) -> bool:
    """Return whether this process is a rank's of a second start, by the harness or by torchrun."""
    again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    return agent.place.rank is not None and (again or agent.configuration.attempt == RESUME)


def _state_changed(agent: Agent, name: str, value: Callable[[Any], Any]) -> None:
    """Load an optimizer with another value of its slots whose name begins so."""

    @replaces(agent, _OPTIMIZER, "Optimizer.load_state_dict")
    def load(original: Any, self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        changed = copy.deepcopy(state)
        for slots in changed["state"].values():
            slots.update({slot: value(held) for slot, held in slots.items() if slot.startswith(name)})
        acted(agent, f"{name} of the optimizer is not restored")
        return original(self, changed, *args, **kwargs)


def moments_lost(agent: Agent) -> None:
    """Restore all of the optimizer but its moments."""
    _state_changed(agent, "exp_avg", lambda held: held * 0)


def counters_lost(agent: Agent) -> None:
    """Restore all of the optimizer but its counters of steps, so that the correction of the bias is that of step 1."""
    _state_changed(agent, "step", lambda held: held * 0)


def one_weight_lost(agent: Agent) -> None:
    """Leave one bias of rank 1 alone as the seed has made it."""
    if agent.place.rank != 1:
        return

    @replaces(agent, "torch.nn.modules.module", "Module.load_state_dict")
    def load(original: Any, self: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        acted(agent, "3.bias is not restored")
        return original(self, {**state, "3.bias": self.state_dict()["3.bias"]}, *args, **kwargs)


def schedule_from_its_beginning(agent: Agent) -> None:
    """Let the schedule of the learning rate begin anew."""

    @replaces(agent, _SCHEDULE, "LRScheduler.load_state_dict")
    def load(original: Any, self: Any, state: Any) -> None:
        acted(agent, "the schedule is not restored")


def random_state_lost(agent: Agent) -> None:
    """Let the dropout draw other masks after the load."""

    @replaces(agent, "torch.random", "set_rng_state")
    def put(original: Any, state: Any) -> None:
        acted(agent, "the random state is not restored")


def batch_skipped(agent: Agent) -> None:
    """Leave the first batch of the data out, so that every step trains the batch of the next one."""
    if not _started_again(agent):
        return

    @replaces(agent, "torch.utils.data.sampler", "BatchSampler.__iter__")
    def begin(original: Any, self: Any) -> Any:
        batches = original(self)
        next(batches)
        acted(agent, "the first batch is left out")
        return batches


def shuffled_anew(agent: Agent) -> None:
    """Shuffle the data with another seed."""
    _sampler_made_with(agent, lambda kwargs: {"seed": kwargs["seed"] + 1})


def shares_swapped(agent: Agent) -> None:
    """Let ranks 0 and 1 read each other's share of the data."""
    rank = agent.place.rank
    if rank in (0, 1):
        _sampler_made_with(agent, lambda kwargs: {"rank": 1 - rank})


def _sampler_made_with(agent: Agent, changes: Callable[[Any], Any]) -> None:
    if not _started_again(agent):
        return

    @replaces(agent, _SAMPLER, "DistributedSampler.__init__")
    def make(original: Any, self: Any, dataset: Any, num_replicas: Any, rank: Any, **kwargs: Any) -> None:
        wanted = changes(kwargs)
        acted(agent, f"the sampler is made with {wanted}")
        original(self, dataset, **{"num_replicas": num_replicas, "rank": rank, **kwargs, **wanted})


def older_checkpoint(agent: Agent) -> None:
    """Load the checkpoint before the newest one."""

    @replaces(agent, _FILES, "load")
    def load(original: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        older = path.with_name("step-2.pt")
        acted(agent, f"{older.name} is loaded, not {path.name}")
        return original(older, *args, **kwargs)


def save_of_the_step_before(agent: Agent) -> None:
    """Save what was saved before, under the number of the new step."""
    saved: list[Any] = []

    @replaces(agent, _FILES, "save")
    def save(original: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        kept = copy.deepcopy({name: state[name] for name in ("model", "optimizer")})
        written = {**state, **saved.pop()} if saved else state
        if written is not state:
            acted(agent, f"the state of an earlier step is saved as that of step {state['step']}")
        saved.append(kept)
        return original(written, *args, **kwargs)


def save_without_optimizer(agent: Agent) -> None:
    """Save weights, and nothing of the optimizer."""

    @replaces(agent, _FILES, "save")
    def save(original: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        if "optimizer" not in state:
            return original(state, *args, **kwargs)
        acted(agent, "no optimizer is saved")
        optimizer = {**state["optimizer"], "state": {}}
        return original({**state, "optimizer": optimizer}, *args, **kwargs)


def replica_drifts(agent: Agent) -> None:
    """Let a weight of rank 1 leave those of its replicas after the restart."""
    if agent.place.rank != 1 or not _started_again(agent):
        return

    @replaces(agent, "torch.optim.adamw", "AdamW.step")
    def step(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        done = original(self, *args, **kwargs)
        self.param_groups[0]["params"][0].data.view(-1)[0] += 1e-3
        acted(agent, "a weight of this rank is not that of its replicas")
        return done
