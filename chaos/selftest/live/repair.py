"""Defects of a repair: the copied state, its source, its time, and the step from which training goes on."""

from __future__ import annotations

import os
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import is_moment, replaces, state_of

_DEVICE = "chaos.rehearsal.device.device"
_RETRY = "chaos.rehearsal.ttp.retry"
_LOOK_SECONDS = 10.0


def _after_copy(agent: Agent, mutate: Any) -> None:
    """Mutate the state that a rank has got from another: ``mutate`` changes an array in place, given its name."""

    @replaces(agent, _DEVICE, "Device._send_recv")
    def send_recv(original: Any, self: Any, parameters: Any, source: int, target: int) -> Any:
        done = original(self, parameters, source, target)
        if agent.place.rank == target:
            from mindspore import Tensor

            for parameter in parameters:
                array = parameter.asnumpy().copy()
                mutate(parameter.name, array)
                if (array != parameter.asnumpy()).any():
                    acted(agent, f"{parameter.name} is not what was copied")
                parameter.set_data(Tensor(array))
        return done


def moments_not_copied(agent: Agent) -> None:
    """Give the repaired rank the weights of its replica, and moments of zero."""

    def mutate(name: str, array: Any) -> None:
        if is_moment(name):
            array[...] = 0

    _after_copy(agent, mutate)


def bit_flipped(agent: Agent) -> None:
    """Flip one bit of one weight on its way from the replica."""

    def mutate(name: str, array: Any) -> None:
        if name.startswith("layer3") and array.ndim == 2:
            array.reshape(-1).view("uint32")[7] ^= 1

    _after_copy(agent, mutate)


def global_step_not_copied(agent: Agent) -> None:
    """Leave the optimizer's step counter of the repaired rank one step behind."""

    def mutate(name: str, array: Any) -> None:
        if name == "global_step":
            array -= 1

    _after_copy(agent, mutate)


def stale_copy(agent: Agent) -> None:
    """Let the replica give its state as it was before its last update."""
    if agent.place.rank is None:
        return
    before: dict[str, Any] = {}

    @replaces(agent, "chaos.rehearsal.device.memory", "Memory.update_begins")
    def update_begins(original: Any, self: Any) -> None:
        before.update(state_of(agent))
        original(self)

    class Before:
        def __init__(self, name: str) -> None:
            self.name = name

        def asnumpy(self) -> Any:
            return before[self.name]

    @replaces(agent, _DEVICE, "Device._send_recv")
    def send_recv(original: Any, self: Any, parameters: Any, source: int, target: int) -> Any:
        if agent.place.rank == source:
            if any((before[parameter.name] != parameter.asnumpy()).any() for parameter in parameters):
                acted(agent, "the state before the last update is given")
            parameters = [Before(parameter.name) for parameter in parameters]
        return original(self, parameters, source, target)


def old_state_kept(agent: Agent) -> None:
    """Let the new process of a lost rank take the dead one's state of an earlier step, not its replica's state."""
    if agent.place.rank is None:
        return
    assert agent.configuration.secret is not None
    kept = os.path.join(os.path.dirname(agent.configuration.secret), f"state-{agent.place.rank}.npz")

    @replaces(agent, "chaos.rehearsal.device.memory", "Memory.update_begins")
    def update_begins(original: Any, self: Any) -> None:
        import numpy

        numpy.savez(kept, **state_of(agent))
        original(self)

    @replaces(agent, _DEVICE, "Device._send_recv")
    def send_recv(original: Any, self: Any, parameters: Any, source: int, target: int) -> Any:
        done = original(self, parameters, source, target)
        if agent.place.rank == target:
            import numpy
            from mindspore import Tensor

            with numpy.load(kept) as old:
                for parameter in parameters:
                    if parameter.name != "global_step":  # with it the first step would be another: easier to see
                        if (old[parameter.name] != parameter.asnumpy()).any():
                            acted(agent, f"{parameter.name} is what the dead rank had kept")
                        parameter.set_data(Tensor(old[parameter.name]))
        return done


def wrong_group(agent: Agent) -> None:
    """Give the repaired rank the state of a rank that holds other slices."""

    @replaces(agent, "chaos.rehearsal.ttp.replicas", "Replicas.groups")
    def groups(original: Any, self: Any) -> Any:
        rank_groups = original(self)
        ranks = sorted(rank for group in rank_groups for rank in group)
        others = [tuple(ranks[at : at + 2]) for at in range(0, len(ranks), 2)]
        if others != rank_groups:
            acted(agent, f"the replica groups are taken for {others}, not {rank_groups}")
        return others


def mixed_up(agent: Agent) -> None:
    """Reverse the rows of every weight, which comes from the right rank by the right calls."""

    def mutate(name: str, array: Any) -> None:
        if array.ndim == 2 and not is_moment(name):
            array[...] = array[::-1].copy()

    _after_copy(agent, mutate)


def repaired_twice(agent: Agent) -> None:
    """Let the controller have the parameters copied a second time."""

    @replaces(agent, _RETRY, "Retry._repair")
    def repair(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        acted(agent, "the parameters are copied once more")
        original(self, *args)


def healthy_repaired(agent: Agent) -> None:
    """Let the controller have parameters copied after an error of communication, though no rank has lost any."""

    @replaces(agent, _RETRY, "Retry.run")
    def run(original: Any, self: Any, members: Any, step: int) -> None:
        failed = [member for member in members if member.status]
        for member in failed:
            acted(agent, f"rank {member.rank} is taken for one that has lost its memory")
            member.status = 1
        original(self, members, step)


def _goes_on_beside(agent: Agent, beside: int) -> None:
    @replaces(agent, "chaos.rehearsal.ttp.processor", "Processor._resume")
    def resume(original: Any, self: Any, step: int) -> None:
        acted(agent, f"it goes on behind step {step + beside}, not {step}")
        original(self, step + beside)


def step_skipped(agent: Agent) -> None:
    """Let the ranks go on with the data of the step after the next one after the repair."""
    _goes_on_beside(agent, 1)


def step_twice(agent: Agent) -> None:
    """Let the ranks go on with the data of the common step, which they have trained already, after the repair."""
    _goes_on_beside(agent, -1)


def downgraded(agent: Agent) -> None:
    """Let the controller have a checkpoint saved and the job ended, where a repair was promised."""

    @replaces(agent, "chaos.rehearsal.ttp.strategies", "Possible.default")
    def default(original: Any, self: Any) -> str:
        chosen = "dump" if self.dump else "exit"
        if chosen != (planned := original(self)):
            acted(agent, f"{chosen} is chosen, not {planned}")
        return chosen


def source_spoilt(agent: Agent) -> None:
    """Flip one bit of a weight of the replica before it is copied, so that both ranks agree."""

    @replaces(agent, _DEVICE, "Device._send_recv")
    def send_recv(original: Any, self: Any, parameters: Any, source: int, target: int) -> Any:
        if agent.place.rank == source:
            from mindspore import Tensor

            for parameter in parameters:
                if parameter.name == "layer3.weight":
                    array = parameter.asnumpy().copy()
                    array.reshape(-1).view("uint32")[7] ^= 1
                    acted(agent, f"a bit of {parameter.name} flips before it is copied")
                    parameter.set_data(Tensor(array))
        return original(self, parameters, source, target)


def _without_fault(agent: Agent, step: int) -> None:
    """Let the controller take the ranks for abnormal once, when they have trained up to ``step``."""
    done: list[int] = []
    waiting: list[Any] = []

    @replaces(agent, "chaos.rehearsal.ttp.controller", "Controller._abnormal")
    def abnormal(original: Any, self: Any) -> bool:
        steps = [member.step for member in self._roster.members()]
        if not done and len(steps) == self._world_size and min(steps) == step:
            done.append(step)
            acted(agent, f"the ranks are taken for abnormal after step {step}")
            return True
        return bool(original(self))

    @replaces(agent, "chaos.rehearsal.ttp.controller", "Controller._repairable_online")
    def repairable_online(original: Any, self: Any, bad: Any) -> bool:
        # Without a fault there is nothing to be repaired, and the controller would have the job saved.
        return bool(done and not bad) or bool(original(self, bad))

    @replaces(agent, "chaos.rehearsal.ttp.processor", "Processor.end_update")
    def end_update(original: Any, self: Any, ended: int) -> None:
        original(self, ended)
        if ended == step:
            waiting.append(self)

    @replaces(agent, "chaos.rehearsal.device.interconnect", "Fabric.reduce")
    def reduce(original: Any, self: Any, *args: Any) -> Any:
        if waiting:  # or the step would be over before the controller looks
            processor = waiting.pop()
            with processor._state:
                processor._state.wait_for(lambda: processor._stopping, _LOOK_SECONDS)
        return original(self, *args)


def before_the_fault(agent: Agent) -> None:
    """Let the controller repair the job once before the fault, when nothing has happened."""
    _without_fault(agent, 1)


def once_more(agent: Agent) -> None:
    """Let the controller repair the job a second time, some steps after the fault."""
    _without_fault(agent, 4)


def saved_besides(agent: Agent) -> None:
    """Let the controller have an end-of-life checkpoint saved as well, in the middle of the repair."""

    @replaces(agent, _RETRY, "Retry._repair")
    def repair(original: Any, self: Any, step: int, *args: Any) -> None:
        from chaos.rehearsal.ttp.dump import Dump

        original(self, step, *args)
        acted(agent, f"step {step} is saved in the middle of the repair")
        Dump(self._roster, self._replicas, self._timings, self._log).run(step, {0})


def rank_hangs(agent: Agent) -> None:
    """Let rank 1 report that it goes on after the repair, and not do it."""
    if agent.place.rank != 1:
        return

    @replaces(agent, "chaos.rehearsal.ttp.processor", "Processor._resume")
    def resume(original: Any, self: Any, step: int) -> None:
        acted(agent, f"it does not go on behind step {step}")
        self._reply("go on")


def only_the_first(agent: Agent) -> None:
    """Let the controller repair the job once, and then watch no rank any more."""
    reported: list[Any] = []

    @replaces(agent, "chaos.rehearsal.ttp.controller", "Controller._abnormal")
    def abnormal(original: Any, self: Any) -> bool:
        if not hasattr(self, "repaired"):
            return bool(original(self))
        # Not by the original, which would tell of them in the log.
        overlooked = [member.rank for member in self._roster.members() if member.status]
        if overlooked and not reported:
            reported.append(overlooked)
            acted(agent, f"ranks {overlooked} are abnormal, and not looked at")
        return False

    @replaces(agent, _RETRY, "Retry.run")
    def run(original: Any, self: Any, *args: Any) -> None:
        original(self, *args)
        # The bound method tells whose repair it is: that of this process's controller.
        self._enter.__self__.repaired = True


def step_of_the_first(agent: Agent) -> None:
    """Let the controller repair a second error at the step of the first one."""
    steps: list[int] = []

    @replaces(agent, "chaos.rehearsal.ttp.controller", "Controller._pre_lock")
    def pre_lock(original: Any, *args: Any) -> int:
        steps.append(original(*args))
        if steps[-1] != steps[0]:
            acted(agent, f"the common step is taken for {steps[0]}, not {steps[-1]}")
        return steps[0]
