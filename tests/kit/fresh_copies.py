"""Makes that give the same each time: made once, and copied afresh for each caller, who may spoil the copy."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


def fresh_copies(make: Callable[P, T]) -> Callable[P, T]:
    """Call ``make`` once for each set of arguments; each call gives a copy that shares nothing with another."""

    def pickled(*args: P.args, **kwargs: P.kwargs) -> bytes:
        return pickle.dumps(make(*args, **kwargs), pickle.HIGHEST_PROTOCOL)

    once: Callable[..., bytes] = cache(pickled)

    @wraps(make)
    def copied(*args: P.args, **kwargs: P.kwargs) -> T:
        return cast(T, pickle.loads(once(*args, **kwargs)))

    return copied
