"""What is wrong with a topology or a target, and which key of the scenario says so."""

from __future__ import annotations


class TopologyError(ValueError):
    """A layout that does not add up, or a target that the layout does not have.

    ``key`` is the path of the offending key, relative to the part that was read: the cluster
    (``parallel.data_parallel``) or the target (``rank``). ``message`` says what is wrong, ``hint`` what to do about it.
    """

    def __init__(self, key: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.hint = hint
