"""Undo actions of other packages: a fault of a package brings the action that puts its fault back.

An action is found by the name that the undo step has, in a new process too: that of ``chaos heal`` after the harness
was killed. A name of a built-in action cannot be taken.
"""

from __future__ import annotations

from typing import cast

from chaos.base.registry import Registry, RegistryError, UnknownName, registry
from chaos.faults.action import CannotUndo, UndoAction

GROUP = "chaos.undo"
"""Entry point group of such actions, by the name that undo steps have for them."""


def action_of_package(name: str, registered: Registry | None = None) -> UndoAction | None:
    """The action that a package has registered; None where none has.

    ``registered`` stands in for the installed ones. Raises CannotUndo for one that cannot be used.
    """
    try:
        found = (registry(GROUP) if registered is None else registered).load(name)
    except UnknownName:
        return None
    except RegistryError as error:
        raise CannotUndo(str(error)) from error
    except Exception as error:  # whatever another package's module does when it is imported
        raise CannotUndo(f"undo action {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise CannotUndo(f"what is registered as undo action {name!r} cannot be called")
    return cast(UndoAction, found)


def waits_for_processes(name: str) -> bool:
    """Whether an action says by ``after_processes = True`` that the job's processes have to be ended before it."""
    try:
        return bool(getattr(action_of_package(name), "after_processes", False))
    except CannotUndo:
        return False
