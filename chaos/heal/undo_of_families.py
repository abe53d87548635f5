"""Undo actions of families: a fault brings the action that puts it back.

An action is found by the name in the undo step, also in a new process: ``chaos heal`` after the harness was killed. The
name of a built-in action cannot be taken.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

from chaos.base.families import Member
from chaos.base.registry import Registry, RegistryError, UnknownName, registry
from chaos.faults.action import CannotUndo, UndoAction
from chaos.faults.family import Undo
from chaos.history.ledger import UndoStep

GROUP = "chaos.undo"
"""Registry of the actions, by their names in undo steps.

A package may also add to it directly: an :class:`~chaos.faults.family.Undo`, or a function that waits for nothing.
"""


def own_actions() -> Collection[str]:
    """Return the names of the actions that families of this project bring."""
    return registry(GROUP).built_in.keys()


def action_of_family(name: str, registered: Registry | None = None) -> UndoAction | None:
    """Return the action that a family or a package has registered; None where none has.

    ``registered`` stands in for the installed ones. Raises CannotUndo for an action that cannot be used.
    """
    try:
        action = (registry(GROUP) if registered is None else registered).load(name)
        if isinstance(action, Undo):
            action = Member(name, action.act, None, action.act).load()
    except UnknownName:
        return None
    except RegistryError as error:
        raise CannotUndo(str(error)) from error
    except Exception as error:  # whatever another package's module does when it is imported
        raise CannotUndo(f"undo action {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(action):
        raise CannotUndo(f"the object registered as undo action {name!r} cannot be called")
    return cast(UndoAction, action)


def waits_for_processes(name: str) -> bool:
    """Return whether the job's processes have to be ended before an action."""
    action = _registered(name)
    return isinstance(action, Undo) and action.after_processes


def waits_for_launches(name: str) -> bool:
    """Return whether an action waits until the job is not launched any more."""
    action = _registered(name)
    return isinstance(action, Undo) and action.after_launches


def attached_form(step: UndoStep, rank: int) -> UndoStep:
    """Return the step of a fault kind, for a rank of an attached job. Its note says how to do it by hand.

    Raises CannotUndo where the form is not known.
    """
    try:
        action = registry(GROUP).load(step.action)
    except UnknownName:
        return step
    except RegistryError as error:  # in the wrong form the rank could not be distinguished from another process
        raise CannotUndo(str(error)) from error
    if not isinstance(action, Undo) or action.attached is None:
        return step
    try:
        by_hand = action.attached.by_hand.format_map(step.arguments)
    except (LookupError, ValueError) as error:
        raise CannotUndo(f"how {step.action!r} is done by hand does not fit its step: {error!r}") from error
    note = f"{step.note} ({by_hand} does it by hand)"
    return replace(step, action=action.attached.action, arguments={**step.arguments, "rank": rank}, note=note)


def _registered(name: str) -> object:
    try:
        return registry(GROUP).load(name)
    except Exception:  # it cannot be used: asking for the action raises the reason
        return None
