"""Undoing pauses: the training goes on."""

from __future__ import annotations

from pathlib import Path

from chaos.base.wait import DeadlineExpired, wait_for
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.pause.paused import paused_at
from chaos.history.ledger import UndoStep
from chaos.machine.linux.process import ProcessIdentity, has_ended, state

_CONTINUE_SECONDS = 10.0


def continue_training(step: UndoStep, context: UndoContext) -> str:
    """Check that no rank is paused any more. Arguments: ranks, each with its record and its process.

    The controller lets the ranks go on by order, and when the connection of the pause's sender has ended; so after a
    killed harness nothing has to be done, but the end of the pause has to be seen.
    """
    paused_ranks: list[str] = []

    def all_go_on() -> bool:
        paused_ranks.clear()
        for rank in step.arguments.get("ranks", []):
            match rank:
                case {"record": str(record), "pid": int(pid), "start_time": int(start_time), "boot": str(boot)}:
                    identity = ProcessIdentity(pid, start_time, boot)
                case _:
                    raise CannotUndo(f"step {step.id} does not say which ranks: {step.arguments}")
            if has_ended(state(identity)):
                continue
            if (paused := paused_at(Path(record))) is not None:
                paused_ranks.append(f"{identity} after step {paused}")
        return not paused_ranks

    try:
        wait_for("continue", all_go_on, seconds=_CONTINUE_SECONDS, clock=context.clock)
    except DeadlineExpired as expired:
        raise CannotUndo(f"still paused after {expired.seconds:g} s: {', '.join(paused_ranks)}") from expired
    return "no rank is paused"
