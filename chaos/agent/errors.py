"""A rank's record of an exception: the last one, and the first of its chain, which the last may hide.

A second exception in a handler (``During handling of the above exception …``) or a masked cause hides the first error.
Both are kept in the exception's chain, and nowhere else once the process has ended.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from typing import Any

from chaos.agent.record import Record

_MOST = 300
"""Characters of a text that are recorded."""

_LONGEST_CHAIN = 50


def record_uncaught(record: Record) -> None:
    """Record the exception that ends this process, whatever other hooks there are."""
    tell = sys.excepthook

    def record_and_tell(kind: type[BaseException], error: BaseException, traceback: Any) -> Any:
        record.write("error.uncaught", **error_fields(error))
        return tell(kind, error, traceback)

    sys.excepthook = record_and_tell


def error_fields(error: BaseException | None) -> dict[str, Any]:
    """Return the fields of an event for an exception; none without an exception.

    ``error`` is the exception's text with the class before it, ``base`` the nearest class of Python's own.
    """
    return {} if error is None else {"error": _text(error), "base": _base(error), **first_fields(error)}


def first_fields(error: BaseException) -> dict[str, Any]:
    """Return the fields for the first exception of a chain; none where the chain has only one.

    ``first`` is its text, ``first_base`` its class, and ``wrapped`` whether each was raised ``from`` the one before.
    """
    first, wrapped = error, True
    for earlier, is_cause in _chain(error):
        first, wrapped = earlier, wrapped and is_cause
    return {} if first is error else {"first": _text(first), "first_base": _base(first), "wrapped": wrapped}


def _chain(error: BaseException) -> Iterator[tuple[BaseException, bool]]:
    """Yield each earlier exception, the nearest first, with whether the later one was raised ``from`` it.

    An exception that is hidden by ``from None`` is among them.
    """
    ids = {id(error)}
    for _ in range(_LONGEST_CHAIN):
        is_cause = error.__cause__ is not None
        earlier = error.__cause__ if is_cause else error.__context__
        if earlier is None or id(earlier) in ids:
            return
        ids.add(id(earlier))
        yield earlier, is_cause
        error = earlier


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # an exception whose text fails must not take the place of the error
        text = "its text cannot be made"
    return f"{type(error).__name__}: {text}"[:_MOST]


def _base(error: BaseException) -> str:
    """Return the nearest class of the exception that is Python's own."""
    return next(str(cls.__name__) for cls in type(error).__mro__ if getattr(builtins, cls.__name__, None) is cls)
