"""The error of a run that is not even started."""

from __future__ import annotations


class Refused(RuntimeError):
    """The run cannot be started on this machine, or with these options. The text says what to do."""
