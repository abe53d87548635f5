"""Putting things back: the actions that undo steps name. Teardown and ``heal`` use the same actions.

This module has the actions that every run may need. A family of faults brings the actions for its own faults.

Every action may run twice, and may have been interrupted before: it inspects the present state and does the rest.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.base.growth import FEW
from chaos.base.rank_sets import rank_set
from chaos.base.registry import package_of
from chaos.faults.action import CannotUndo, UndoAction, UndoContext
from chaos.heal.undo_nodes import end_nodes
from chaos.heal.undo_of_families import (
    GROUP,
    action_of_family,
    own_actions,
    waits_for_launches,
    waits_for_processes,
)
from chaos.history.ledger import Ledger, LedgerError, UndoStep
from chaos.machine.job.ending import end_processes
from chaos.machine.job.processes import FoundProcess, find_run_processes, own_launchers
from chaos.platforms.nodes import END_NODES
from chaos.store.directory import MARKER, private_name

__all__ = ["UNDO_ACTIONS", "CannotUndo", "UndoAction", "UndoContext", "Undone", "undo_open_steps", "undo_step"]

_GRACE_SECONDS = 5.0
"""How long a launcher of the user's own may take to end by itself."""


@dataclass(frozen=True)
class Undone:
    """The outcome of one step. ``ok`` is False if it was not undone.

    ``unrecorded`` is why the ledger could not be written (a full disk): the step is undone, but stays open there.
    """

    step: UndoStep
    ok: bool
    how: str
    unrecorded: LedgerError | None = None


def in_order(steps: Iterable[UndoStep]) -> list[UndoStep]:
    """Return the steps in the order of undoing: as given, but steps that wait for the processes' end come last."""
    return sorted(steps, key=lambda step: after_processes(step.action))


def after_processes(action: str) -> bool:
    """Return whether an action has to wait for the end of the processes that use what it removes."""
    return action == REMOVE_DIRECTORY or (action not in _ENGINE and waits_for_processes(action))


def after_launches(action: str) -> bool:
    """Return whether an action undoes something made for the job's next launch: it waits until there is none."""
    return action not in _ENGINE and waits_for_launches(action)


def healable(steps: Iterable[UndoStep]) -> list[UndoStep]:
    """Return the steps of a fault, ready for the ledger, before the fault is made.

    The note of a step names the package that its action comes from, which the healing machine may lack. Raises
    CannotUndo where no action of that name is installed: nothing would put the fault back.
    """
    return [_with_origin(step) for step in steps]


def _with_origin(step: UndoStep) -> UndoStep:
    if step.action in UNDO_ACTIONS:
        return step
    if action_of_family(step.action) is None:
        raise CannotUndo(
            f"nothing here could undo the fault: no package has registered the undo action {step.action!r} (entry "
            f"point group {GROUP}), so the fault is not made"
        )
    package = package_of(GROUP, step.action)
    return step if package is None else replace(step, note=f"{step.note} (undo action of {package})".lstrip())


def undo_open_steps(ledger: Ledger, actions: Mapping[str, UndoAction], context: UndoContext) -> list[Undone]:
    """Undo every open step of the ledger, the latest first. A step that fails stays open, and the others follow."""
    return [undo_step(ledger, step, actions, context) for step in in_order(ledger.open_steps())]


def undo_step(ledger: Ledger, step: UndoStep, actions: Mapping[str, UndoAction], context: UndoContext) -> Undone:
    """Undo one step and close it in the ledger. Raises nothing: after any failure the other steps still follow."""
    try:
        action = actions.get(step.action)
        if action is None and step.action not in UNDO_ACTIONS:
            action = action_of_family(step.action)
        if action is None:
            missing = f"there is no undo action {step.action!r} here"
            advice = "install the package, or the version of chaos, that brings it, and heal again"
            return Undone(step, False, f"{missing}: {advice}; {step.note}")
        how = action(step, context)
    except (CannotUndo, OSError) as error:
        return Undone(step, False, str(error))
    except Exception as error:  # a defect of an action, or a record of the job that it cannot read
        return Undone(step, False, f"{type(error).__name__}: {error}; {step.note}")
    try:
        ledger.close(step.id, how)
    except LedgerError as error:
        return Undone(step, True, how, error)
    return Undone(step, True, how)


def end_job(step: UndoStep, context: UndoContext) -> str:
    """End every process of the run with SIGKILL. Arguments: ``run``, the run's CHAOS_RUN.

    A launcher of the user's own gets SIGTERM before: srun gives its allocation back then, and otherwise Slurm keeps it.
    """
    if context.adopted:
        raise CannotUndo("the job was running before this run, which must not end it; nothing was ended")
    if step.arguments.get("run") != context.token:
        raise CannotUndo(f"step {step.id} names another run, {step.arguments.get('run')!r}; nothing was ended")

    def launchers() -> list[FoundProcess]:
        return own_launchers(find_run_processes(context.token))

    asked = end_processes(launchers, grace_seconds=_GRACE_SECONDS, clock=context.clock).ended if launchers() else ()
    result = end_processes(lambda: find_run_processes(context.token), grace_seconds=0, clock=context.clock)
    if result.remaining:
        left = "; ".join(f"{process.identity}: {reason}" for process, reason in result.remaining)
        raise CannotUndo(f"processes of the run are left: {left}")
    if not (ended := (*asked, *result.ended)):
        return "no process of the run was left"
    return f"ended {_in_words(ended)}"


def remove_directory(step: UndoStep, context: UndoContext) -> str:
    """Remove a private directory of the run. Arguments: ``path``, absolute.

    It must be a directory, not a link, of this user, whose marker file holds this run's token; without a marker it is
    removed only if it is empty and has the name of this run's private directories. Links in it are removed, never
    followed. The marker goes last, so that a removal that was cut off can be completed.
    """
    path = Path(str(step.arguments.get("path", "")))
    if not path.is_absolute():
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    try:
        status = path.lstat()
    except FileNotFoundError:
        return f"{path} does not exist"
    if not stat.S_ISDIR(status.st_mode):
        raise CannotUndo(f"{path} is not a directory; it was left alone")
    if status.st_uid != os.geteuid():
        raise CannotUndo(f"{path} belongs to user {status.st_uid}; it was left alone")
    names = {entry.name for entry in path.iterdir()}
    if names - {MARKER}:
        if _marked_with(path) != context.token:
            raise CannotUndo(f"{path} does not carry this run's marker {MARKER}; it was left alone")
        for name in names - {MARKER}:
            _remove(path / name)
    elif names and _marked_with(path) not in (context.token, ""):
        raise CannotUndo(f"{path} carries another run's marker; it was left alone")
    elif not (names and _marked_with(path)) and path.name != private_name(context.token):
        raise CannotUndo(f"{path} is empty, but has not the name of this run's directories; it was left alone")
    if {entry.name for entry in path.iterdir()} - {MARKER}:  # without the marker nobody could remove it later
        raise CannotUndo(f"{path}: something was put there meanwhile; do it again")
    (path / MARKER).unlink(missing_ok=True)
    path.rmdir()
    return f"removed {path}"


REMOVE_DIRECTORY = "remove-directory"

_ENGINE: Mapping[str, UndoAction] = {
    "end-job": end_job,
    END_NODES: end_nodes,
    REMOVE_DIRECTORY: remove_directory,
}
"""The actions that every run may need, whatever its faults: end its job, its nodes and its private directories."""


class _BuiltIn(Mapping[str, UndoAction]):
    """The actions of the engine, and those of this project's families, each imported when it is asked for."""

    def __getitem__(self, name: str) -> UndoAction:
        if name in _ENGINE:
            return _ENGINE[name]
        action = action_of_family(name) if name in own_actions() else None
        if action is None:
            raise KeyError(name)
        return action

    def __iter__(self) -> Iterator[str]:
        yield from _ENGINE
        yield from own_actions()

    def __len__(self) -> int:
        return len(_ENGINE) + len(own_actions())


UNDO_ACTIONS: Mapping[str, UndoAction] = _BuiltIn()
"""The built-in actions. Other packages register theirs (:mod:`chaos.heal.undo_of_families`), under other names."""


def _marked_with(directory: Path) -> str:
    """Return the marker file's content; empty without a marker, or if its writer was killed while writing it."""
    try:
        descriptor = os.open(directory / MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CannotUndo(f"{directory / MARKER} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        return file.read(4096).decode("utf-8", "replace").strip()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        try:
            shutil.rmtree(path)
        except RecursionError as error:  # before Python 3.13; a job may make directories that deep
            raise CannotUndo(f"{path} has too many levels of directories below: remove it by rm -r") from error
    else:
        path.unlink()


def _in_words(ended: Sequence[FoundProcess]) -> str:
    """Return each process with its PID; of very many ranks only their numbers."""
    ranks = [process.rank for process in ended if process.role == "rank" and process.rank is not None]
    many = len(ranks) > FEW
    alone = [process for process in ended if not many or process.role != "rank" or process.rank is None]
    return ", ".join(
        [
            *([rank_set(ranks)] if many else []),
            *(f"{_named(process.role, process.rank)} {process.pid}" for process in alone),
        ]
    )


def _named(role: str, rank: int | None) -> str:
    return f"rank {rank}" if rank is not None else "process" if role == "other" else role
