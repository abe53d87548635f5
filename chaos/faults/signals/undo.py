"""Undoing signals: a process that SIGSTOP holds goes on."""

from __future__ import annotations

import functools
import signal

from chaos.faults.action import CannotUndo, UndoContext, see_continued
from chaos.faults.attached_rank import lives_as_rank, process_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.process import (
    NoSuchProcess,
    ProcessIdentity,
    RefusedProcess,
    WrongProcess,
    has_ended,
    send_signal,
    state,
)
from chaos.machine.linux.procfs import environment


def resume_process(step: UndoStep, context: UndoContext) -> str:
    """Continue a process stopped by SIGSTOP. Arguments: pid, start_time (ticks), boot, and node where it has one."""
    match step.arguments:
        case {"pid": int(), "start_time": int(), "boot": str(), "node": int()}:
            return _resume_on_node(ProcessIdentity(**step.arguments), context)
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot)}:
            identity = ProcessIdentity(pid, start_time, boot)
        case _:
            raise CannotUndo(f"step {step.id} does not say which process: {step.arguments}")
    if has_ended(state(identity)):
        return f"{identity} has ended"
    # The identity is checked again when the signal is sent; this makes sure that the ledger names a process of the run.
    if (environment(pid) or {}).get(RUN_VARIABLE) != context.token:
        raise CannotUndo(f"{identity} does not carry this run's {RUN_VARIABLE}; nothing was sent")
    try:
        send_signal(identity, signal.SIGCONT)
    except (NoSuchProcess, WrongProcess):
        return f"{identity} has ended"
    except RefusedProcess as error:
        raise CannotUndo(str(error)) from error
    see_continued(identity, lambda: state(identity), context)
    return f"continued {identity}"


def resume_adopted(step: UndoStep, context: UndoContext) -> str:
    """Continue a rank stopped by SIGSTOP. Arguments: pid, start_time (ticks), boot, rank.

    The signal goes to the process with that PID and start time, which must be that rank by its environment. Afterwards
    the kernel must say that it is not stopped any more.
    """
    identity = process_of(step, context)
    by_hand = f"As its own user or root: kill -CONT {identity.pid}"
    if not lives_as_rank(step, identity, f"nothing was sent. {by_hand}"):
        return f"{identity} has ended"
    try:
        send_signal(identity, signal.SIGCONT)
    except (NoSuchProcess, WrongProcess):
        return f"{identity} has ended"
    except (RefusedProcess, PermissionError) as error:
        raise CannotUndo(f"{identity} was not continued: {error}. {by_hand}") from error
    see_continued(identity, lambda: state(identity), context)
    return f"continued {identity}"


def _resume_on_node(identity: ProcessIdentity, context: UndoContext) -> str:
    """Continue a process of a node, through the remote helper there."""
    assert identity.node is not None
    if context.nodes is None:
        raise CannotUndo(f"{identity}: it is not known how node {identity.node} is reached")
    try:
        with context.nodes.helper(identity.node) as helper:
            if helper is None:
                return f"{identity} has ended: its node is no more"
            helper.resume(identity)
            see_continued(identity, functools.partial(helper.state, identity), context)
    except (NoSuchProcess, WrongProcess):
        return f"{identity} has ended"
    except PlatformError as error:
        raise CannotUndo(str(error)) from error
    return f"continued {identity}"
