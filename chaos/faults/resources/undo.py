"""Undoing faults that limit a process: its limit of open files, its control group."""

from __future__ import annotations

from pathlib import Path

from chaos.faults.action import CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.cgroup import cpu_hierarchy, dissolve
from chaos.machine.linux.limits import set_open_files_limit
from chaos.machine.linux.process import ProcessIdentity, state
from chaos.machine.linux.procfs import environment


def restore_limit(step: UndoStep, context: UndoContext) -> str:
    """Give a process its limit of open files back. Arguments: pid, start_time (ticks), boot, soft."""
    match step.arguments:
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot), "soft": int(soft)}:
            identity = ProcessIdentity(pid, start_time, boot)
        case _:
            raise CannotUndo(f"step {step.id} does not say which process and limit: {step.arguments}")
    if state(identity) in ("gone", "zombie"):
        return f"{identity} has ended"
    if (environment(pid) or {}).get(RUN_VARIABLE) != context.token:
        raise CannotUndo(f"{identity} does not carry this run's {RUN_VARIABLE}; its limit was left alone")
    try:
        set_open_files_limit(identity, soft)
    except LookupError:
        return f"{identity} has ended"
    except ValueError as error:
        raise CannotUndo(f"{identity} cannot get its limit of {soft} open files back: {error}") from error
    return f"{identity} may open {soft} files again"


def leave_group(step: UndoStep, context: UndoContext) -> str:
    """Move processes out of a control group of this run and remove it. Arguments: group, and back, where they were."""
    group, hierarchy = Path(str(step.arguments.get("group", ""))), cpu_hierarchy()
    # Ledgers of older versions do not say it: their processes came from the group above.
    back = Path(str(step.arguments.get("back", group.parent)))
    if hierarchy is None or hierarchy.mount not in group.parents or ".." in (*group.parts, *back.parts):
        raise CannotUndo(f"step {step.id} does not name a control group: {step.arguments}")
    if not back.is_relative_to(hierarchy.mount):
        raise CannotUndo(f"step {step.id} does not say which group its processes came from: {step.arguments}")
    if not group.name.startswith(f"chaos-{context.token}-"):
        raise CannotUndo(f"{group} is no control group of this run; it was left alone")
    if not group.is_dir():
        return f"there is no {group}"
    try:
        return f"removed {group}, {dissolve(group, back, hierarchy)} processes moved back"
    except OSError as error:
        raise CannotUndo(f"{group} may still hold processes of the run: {error}") from error
