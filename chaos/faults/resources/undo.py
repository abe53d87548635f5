"""Undoing faults that limit a process: its limit of open files, its control group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.attached_rank import lives_as_rank, process_of
from chaos.history.ledger import UndoStep
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.cgroup import cpu_hierarchy, dissolve
from chaos.machine.linux.limits import open_files_limit, set_open_files_limit
from chaos.machine.linux.process import ProcessIdentity, has_ended, state
from chaos.machine.linux.procfs import all_pids, environment, read_stat


def restore_limit(step: UndoStep, context: UndoContext) -> str:
    """Restore the limit of open files of a process. Arguments: pid, start_time (ticks), boot, soft."""
    match step.arguments:
        case {"pid": int(pid), "start_time": int(start_time), "boot": str(boot), "soft": int(soft)}:
            identity = ProcessIdentity(pid, start_time, boot)
        case _:
            raise CannotUndo(f"step {step.id} does not say which process and limit: {step.arguments}")
    if has_ended(state(identity)):
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


def restore_limit_adopted(step: UndoStep, context: UndoContext) -> str:
    """Restore the limit of open files of a rank. Arguments: pid, start_time (ticks), boot, rank, soft.

    Processes that the rank has started meanwhile have the low limit too, and their limit is restored as well: before
    the rank's own, which shows the low limit, and again after it, since until then the rank may have started more. A
    limit that the rank has raised itself meanwhile, beyond its old one, stays.
    """
    identity, soft = process_of(step, context), step.arguments.get("soft")
    if not isinstance(soft, int):
        raise CannotUndo(f"step {step.id} does not say which limit: {step.arguments}")
    by_hand = f"As its own user or root: prlimit --pid {identity.pid} --nofile={soft}:"
    if not lives_as_rank(step, identity, f"its limit was left alone. {by_hand}"):
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


def leave_group(step: UndoStep, context: UndoContext) -> str:
    """Move processes out of a control group of this run and remove it. Arguments: group, and back, their old group."""
    group, hierarchy = Path(str(step.arguments.get("group", ""))), cpu_hierarchy()
    # Ledgers of older versions do not have it: their processes came from the group above.
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


def _raise_below(identity: ProcessIdentity, low: int, soft: int) -> int:
    """Raise the limit of a process's descendants that have exactly its low limit; return their number."""
    raised = 0
    for descendant in _descendants(identity):
        with contextlib.suppress(LookupError, ValueError, OSError):  # ended, or has lowered its hard limit itself
            if open_files_limit(descendant) == low:
                set_open_files_limit(descendant, soft)
                raised += 1
    return raised


def _descendants(identity: ProcessIdentity) -> Iterator[ProcessIdentity]:
    stats = {stat.pid: stat for stat in map(read_stat, all_pids()) if stat is not None}
    below, children = {identity.pid}, {identity.pid}
    while children:
        children = {pid for pid, stat in stats.items() if stat.ppid in children} - below
        below |= children
    for pid in below - {identity.pid}:
        yield ProcessIdentity(pid, stats[pid].start_time, identity.boot)
