"""A rank of an attached job, as undo steps name it: by PID, start time and number, not by the run's identity.

The job is older than the run that has made a fault in it. It goes on, and none of its processes is ended.
"""

from __future__ import annotations

from chaos.faults.action import CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import running_claim
from chaos.machine.linux.process import ProcessIdentity, has_ended, state
from chaos.machine.linux.procfs import environment


def process_of(step: UndoStep, context: UndoContext) -> ProcessIdentity:
    """Return the rank's process. Raises CannotUndo where the step does not name one, or the run started its own job."""
    match step.arguments:
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot), "rank": int()}:
            identity = ProcessIdentity(pid, start_time, boot)
        case _:
            raise CannotUndo(f"step {step.id} does not say which process: {step.arguments}")
    if not context.adopted:
        raise CannotUndo(f"step {step.id} belongs to a job that was running already, but this run started its own")
    return identity


def lives_as_rank(step: UndoStep, identity: ProcessIdentity, otherwise: str) -> bool:
    """Return whether the rank lives. Raises CannotUndo where its environment does not show the rank of the step."""
    if has_ended(state(identity)):
        return False
    # A rank whose environment has no number was chosen by its log; PID and start time are the step's anyway.
    variables = environment(identity.pid) or {}
    claims = {running_claim(variables), running_claim(variables, below_torchrun=True)}
    if claims.isdisjoint({("rank", step.arguments["rank"]), ("rank", None)}):
        if has_ended(state(identity)):  # its environment has gone with the process
            return False
        raise CannotUndo(f"{identity} is not seen to be rank {step.arguments['rank']}; {otherwise}")
    return True
