"""The errors of the Python interface. The text of each says what is wrong and what to do."""

from __future__ import annotations


class ChaosError(Exception):
    """A scenario could not be run, or a figure of a run is not there."""


class UnknownScenario(ChaosError):
    """There is no scenario of this name or path."""


class BadScenario(ChaosError):
    """The scenario has mistakes; the text lists all of them with their places."""


class UnknownParameter(ChaosError):
    """The scenario has neither a variable nor an axis of this name, or the value cannot be used."""


class UnknownCell(ChaosError):
    """The matrix has no such cell, or has several where one was asked for."""


class CannotRun(ChaosError):
    """Nothing was started: this machine lacks something, or the scenario cannot work like this."""


class HarnessFailed(ChaosError):
    """The run ended without a verdict by an error of the harness itself."""


class Interrupted(ChaosError):
    """The run was interrupted; its job has been stopped and its faults are undone."""


class NotMeasured(ChaosError):
    """The run has no such figure. The text gives the reason that the run itself gives."""
