"""Undoing what was done to a job that was running already: it goes on, and none of its processes is ended."""

from __future__ import annotations

import signal

from chaos.history.ledger import UndoStep
from chaos.platforms.find import claim_of
from chaos.platforms.process import NoSuchProcess, ProcessIdentity, RefusedProcess, WrongProcess, send_signal, state
from chaos.platforms.procfs import environment
from chaos.run.undo_base import CannotUndo, UndoContext, see_continued

ACTION = "resume-adopted"


def adopted_step(step: UndoStep, rank: int) -> UndoStep:
    """The step of a fault kind that continues a process, for a rank that does not carry the run's identity."""
    return UndoStep(step.id, step.fault, ACTION, {**step.arguments, "rank": rank}, step.note)


def resume_adopted(step: UndoStep, context: UndoContext) -> str:
    """Continue a rank stopped by SIGSTOP. Arguments: pid, start_time (ticks), boot, rank.

    The signal goes to the process with that PID and start time, which must be that rank by its environment. Afterwards
    the kernel must say that it is not stopped any more.
    """
    match step.arguments:
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot), "rank": int(rank)}:
            identity = ProcessIdentity(pid, start_time, boot)
        case _:
            raise CannotUndo(f"step {step.id} does not say which process: {step.arguments}")
    if not context.adopted:
        raise CannotUndo(f"step {step.id} belongs to a job that was running already, but this run started its own")
    if state(identity) in ("gone", "zombie"):
        return f"{identity} has ended"
    if claim_of(environment(pid) or {}) != ("rank", rank):
        raise CannotUndo(
            f"{identity} is not seen to be rank {rank}; nothing was sent. As its own user or root: kill -CONT {pid}"
        )
    try:
        send_signal(identity, signal.SIGCONT)
    except (NoSuchProcess, WrongProcess):
        return f"{identity} has ended"
    except (RefusedProcess, PermissionError) as error:
        raise CannotUndo(f"{identity} was not continued: {error}. As its own user or root: kill -CONT {pid}") from error
    see_continued(identity, lambda: state(identity), context)
    return f"continued {identity}"
