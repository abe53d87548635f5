"""Part of check ``hygiene``: whether a rank's process has ended as the plan says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from chaos.evidence.facts import RESUME, TRAIN, exit_status, signal_number
from chaos.evidence.injection.cut_off import is_cut_off
from chaos.evidence.injection.deaths import required_end
from chaos.evidence.recovery_windows import reaches_the_end
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.effect import effect_of
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.recovery.mechanism import SAVING


@dataclass(frozen=True)
class ExpectedExit:
    """The planned exit status in words, and a test of signal and code."""

    text: str
    is_met: Callable[[int | None, int | None], bool]

    def by(self, event: Event) -> bool:
        """Return whether this exit is as planned."""
        return self.is_met(signal_number(event.data.get("signal")), event.data.get("code"))


@dataclass(frozen=True)
class JudgedExit:
    """The exit of a process. ``planned`` is None where its status is not known; ``observation`` says what it was."""

    event: Event
    planned: bool | None
    expected: str
    observation: str


_WELL = ExpectedExit("exit code 0", lambda signal, code: signal is None and code == 0)
_FAILURE = ExpectedExit(
    "an exit status that shows the failure", lambda signal, code: signal is not None or code not in (0, None)
)


def fault_by_rank(plan: Plan, history: History) -> dict[int, PlannedFault]:
    """Return the fault by which the end of each rank is judged: the last one that hits it, if it does harm."""
    felt = [fault for fault in plan.faults if not (fault.effect.pauses or fault.effect.damages == "files")]
    felt.sort(key=lambda fault: (not fault.effect.harmless, _made(history, fault)))
    return {rank: fault for fault in felt for rank in fault.ranks}


def _made(history: History, fault: PlannedFault) -> int:
    return max((event.mono for event in history.select("fault.injecting", fault=fault.id)), default=0)


def expected_exit(plan: Plan, attempt: str | None, fault: PlannedFault | None) -> ExpectedExit:
    """Return the planned exit of a rank that this fault hits; None: no fault hits it."""
    if attempt == RESUME or reaches_the_end(plan):
        return _WELL
    if fault is not None and is_cut_off(fault):
        # It finds no controller any more, or the teardown ends it; it must not exit as if all were well.
        return _FAILURE
    if fault is not None and (effect_of(fault.kind).silenced is not None or fault.effect.hangs):
        # Whether it still hears of the exit, or the teardown ends it, is a matter of time.
        return ExpectedExit("any status", lambda signal, code: True)
    if fault is not None and (end := required_end(fault)) is not None:
        planned_status = (end.signal, None) if end.code is None else (None, end.code)
        return ExpectedExit(str(end), lambda signal, code: (signal, code) == planned_status)
    if fault is not None and effect_of(fault.kind).reboots:
        # The kernel that could say how it ended has ended with it; the new boot proves the reboot.
        return ExpectedExit("any status, or none", lambda signal, code: signal is not None or code != 0)
    if fault is not None and effect_of(fault.kind).fails:
        return _FAILURE
    if plan.response.mechanism in SAVING:
        # MindSpore's exit handler ends the process with os._exit(1) once the checkpoint is saved; for PyTorch the SDK
        # does so, with 2.
        planned_code = plan.fault_tolerance.exit_code
        return ExpectedExit(f"exit code {planned_code}", lambda signal, code: signal is None and code == planned_code)
    return _FAILURE


def judged_exits(
    plan: Plan, history: History, exits: Sequence[Event], fault: PlannedFault | None, *, running: bool = False
) -> Iterator[JudgedExit]:
    """Yield the exits of one rank in one attempt, each judged. ``running``: the rank may still get another process."""
    replaced = _replaced(plan, exits, running=running)
    for event in exits:
        expected = expected_exit(plan, event.attempt, fault)
        text = f"rank {event.rank} of attempt {event.attempt} ends with {expected.text}"
        if event.pid in replaced:
            yield _of_replaced(plan, history, event, text)
        elif replaced and _not_hit(history, event):
            yield _of_new(plan, event)
        elif expected.by(event):
            yield JudgedExit(event, True, text, exit_status(event))
        elif _lacks_status(event):
            yield JudgedExit(event, None, text, f"process {event.pid} has ended, and its exit status is unknown")
        else:
            yield JudgedExit(event, False, text, exit_status(event))


def _replaced(plan: Plan, exits: Sequence[Event], *, running: bool) -> set[int | None]:
    """Return the processes of a rank that recoveries replace: as many as the plan says, never the last one."""
    if not exits or exits[0].attempt != TRAIN:
        return set()
    restarts = sum(exits[0].rank in recovery.restarted for recovery in plan.response.recoveries)
    return {event.pid for event in (exits if running else exits[:-1])[:restarts]}


def _of_replaced(plan: Plan, history: History, event: Event, expected: str) -> JudgedExit:
    """Judge the end of a replaced process: by the fault, or by the restarter of the ranks, never by itself."""
    acts = [act for act in history.select("fault.injecting", rank=event.rank) if act.pid == event.pid]
    made = {act.data.get("fault") for act in acts}
    ends = [end for fault in plan.faults if fault.id in made and (end := required_end(fault)) is not None]
    planned: bool | None = True
    observation = exit_status(event)
    if ends:
        planned = any(end.was(event) for end in ends)
        observation = f"its process {event.pid}, which a fault has ended, {exit_status(event)}"
    elif any(fault.id in made and effect_of(fault.kind).reboots for fault in plan.faults):
        pass  # the kernel that could say how it ended has ended with it
    elif _lacks_status(event):
        planned, observation = None, f"its process {event.pid} was replaced, and its exit status is unknown"
    elif signal_number(event.data.get("signal")) is None and event.data.get("code") == 0:
        planned, observation = False, f"its process {event.pid}, which was replaced, {exit_status(event)}"
    return JudgedExit(event, planned, expected, observation)


def _of_new(plan: Plan, event: Event) -> JudgedExit:
    """Judge the end of a replacing process like that of a rank that no fault has hit."""
    expected = expected_exit(plan, TRAIN, None)
    text = f"the new process of rank {event.rank} ends with {expected.text}"
    if expected.by(event):
        return JudgedExit(event, True, text, exit_status(event))
    if _lacks_status(event):
        return JudgedExit(event, None, text, f"process {event.pid} has ended, and its exit status is unknown")
    return JudgedExit(event, False, text, exit_status(event))


def _lacks_status(event: Event) -> bool:
    """Return whether an end is known without its cause: the kernel that knew it is gone, or was not asked."""
    return event.data.get("signal") is None and event.data.get("code") is None


def _not_hit(history: History, event: Event) -> bool:
    """Return whether a fault hit another process of the rank, but not this one."""
    acts = history.select("fault.injecting", rank=event.rank)
    return bool(acts) and all(act.pid != event.pid for act in acts)
