"""Undoing what was done to a job that was running already: it goes on, and none of its processes is ended."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

from chaos.faults.action import CannotUndo, UndoContext, see_continued
from chaos.faults.resources.fd_limit import RESTORE_LIMIT
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import running_claim
from chaos.machine.linux.limits import open_files_limit, set_open_files_limit
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, RefusedProcess, WrongProcess, send_signal, state
from chaos.machine.linux.procfs import all_pids, environment, read_stat

RESUME_ADOPTED = "resume-adopted"
RESTORE_LIMIT_ADOPTED = "restore-limit-adopted"

_BY_HAND: dict[str, tuple[str, Callable[[UndoStep], str]]] = {
    "resume-process": (RESUME_ADOPTED, lambda step: f"kill -CONT {step.arguments['pid']}"),
    RESTORE_LIMIT: (
        RESTORE_LIMIT_ADOPTED,
        lambda step: f"prlimit --pid {step.arguments['pid']} --nofile={step.arguments['soft']}:",
    ),
}
"""By action on a process of the run: the one on a rank that does not carry the run's identity, and how to do it by
hand. The others act on what is the run's own (a switch, a control group), whoever's ranks it disturbs."""


def adopted_step(step: UndoStep, rank: int) -> UndoStep:
    """The step of a fault kind, for a rank of a job that was running already."""
    if step.action not in _BY_HAND:
        return step
    action, by_hand = _BY_HAND[step.action]
    note = f"{step.note} ({by_hand(step)} does it by hand)"
    return replace(step, action=action, arguments={**step.arguments, "rank": rank}, note=note)


def resume_adopted(step: UndoStep, context: UndoContext) -> str:
    """Continue a rank stopped by SIGSTOP. Arguments: pid, start_time (ticks), boot, rank.

    The signal goes to the process with that PID and start time, which must be that rank by its environment. Afterwards
    the kernel must say that it is not stopped any more.
    """
    identity = _process_of(step, context)
    by_hand = f"As its own user or root: kill -CONT {identity.pid}"
    if not _lives_as_rank(step, identity, f"nothing was sent. {by_hand}"):
        return f"{identity} has ended"
    try:
        send_signal(identity, signal.SIGCONT)
    except (NoSuchProcess, WrongProcess):
        return f"{identity} has ended"
    except (RefusedProcess, PermissionError) as error:
        raise CannotUndo(f"{identity} was not continued: {error}. {by_hand}") from error
    see_continued(identity, lambda: state(identity), context)
    return f"continued {identity}"


def restore_limit_adopted(step: UndoStep, context: UndoContext) -> str:
    """Give a rank its limit of open files back. Arguments: pid, start_time (ticks), boot, rank, soft.

    What it has started meanwhile has the low limit too, and gets it back as well: before the rank itself, which tells
    which limit that is, and again after it, since until then it may have started more. A limit that the rank has raised
    itself meanwhile, beyond what it had, stays.
    """
    identity, soft = _process_of(step, context), step.arguments.get("soft")
    if not isinstance(soft, int):
        raise CannotUndo(f"step {step.id} does not say which limit: {step.arguments}")
    by_hand = f"As its own user or root: prlimit --pid {identity.pid} --nofile={soft}:"
    if not _lives_as_rank(step, identity, f"its limit was left alone. {by_hand}"):
        return f"{identity} has ended"
    try:
        low = open_files_limit(identity)
        if low >= soft:
            return f"{identity} may open {low} files"
        more = _raise_below(identity, low, soft)
        set_open_files_limit(identity, soft)
        more += _raise_below(identity, low, soft)
    except LookupError:
        return f"{identity} has ended"
    except (ValueError, PermissionError) as error:
        raise CannotUndo(f"{identity} cannot get its limit of {soft} open files back: {error}. {by_hand}") from error
    return f"{identity} may open {soft} files again" + (f", and {more} that it has started" if more else "")


def _process_of(step: UndoStep, context: UndoContext) -> ProcessIdentity:
    match step.arguments:
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot), "rank": int()}:
            identity = ProcessIdentity(pid, start_time, boot)
        case _:
            raise CannotUndo(f"step {step.id} does not say which process: {step.arguments}")
    if not context.adopted:
        raise CannotUndo(f"step {step.id} belongs to a job that was running already, but this run started its own")
    return identity


def _lives_as_rank(step: UndoStep, identity: ProcessIdentity, otherwise: str) -> bool:
    """Whether it lives. Raises CannotUndo where its environment does not say that it is the rank of the step."""
    if state(identity) in ("gone", "zombie"):
        return False
    # A rank whose environment has no number was chosen by its log; PID and start time are those of the step anyway.
    if running_claim(environment(identity.pid) or {}) not in (("rank", step.arguments["rank"]), ("rank", None)):
        if state(identity) in ("gone", "zombie"):  # its environment went with it
            return False
        raise CannotUndo(f"{identity} is not seen to be rank {step.arguments['rank']}; {otherwise}")
    return True


def _raise_below(identity: ProcessIdentity, low: int, soft: int) -> int:
    """Raise the limit of what descends from a process and has exactly its low one; how many these were."""
    raised = 0
    for one in _descendants(identity):
        with contextlib.suppress(LookupError, ValueError, OSError):  # ended, or it has lowered its hard limit itself
            if open_files_limit(one) == low:
                set_open_files_limit(one, soft)
                raised += 1
    return raised


def _descendants(identity: ProcessIdentity) -> Iterator[ProcessIdentity]:
    stats = {stat.pid: stat for stat in map(read_stat, all_pids()) if stat is not None}
    below, found = {identity.pid}, {identity.pid}
    while found:
        found = {pid for pid, stat in stats.items() if stat.ppid in found} - below
        below |= found
    for pid in below - {identity.pid}:
        yield ProcessIdentity(pid, stats[pid].start_time, identity.boot)
