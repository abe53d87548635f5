"""Errors in a topology or a target, each with the offending key of the scenario."""

from __future__ import annotations


class TopologyError(ValueError):
    """A layout that does not add up, or a target that the layout does not have.

    ``key`` is the path of the offending key, relative to the part that was read: the cluster
    (``parallel.data_parallel``) or the target (``rank``). ``message`` names the problem, ``hint`` the remedy.
    """

    def __init__(self, key: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.message = message
        self.hint = hint
