"""Whose fault tolerance a job has: the framework that takes part in it, and the documents that promise it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DOCUMENT: Final = "MindSpore Transformers, Training High Availability"
"""The vendor's document with the rules for jobs of MindSpore."""

POWER_OFF: Final = "MindSpore, Power-off Checkpoint Preservation"
"""The vendor's document on the end-of-life checkpoint of MindSpore."""


@dataclass(frozen=True)
class Vendor:
    """The framework whose fault tolerance a job has, and where its promises stand.

    ``document`` says when each mechanism acts, ``losses`` after which losses nothing can be saved.
    ``cleans_before_saving``: ranks that save an end-of-life checkpoint stop and clean their devices before it.
    ``exit_code`` is that of the ranks after it.
    """

    framework: str
    document: str
    losses: str
    cleans_before_saving: bool = False
    exit_code: int = 1


MINDSPORE: Final = Vendor("MindSpore", DOCUMENT, POWER_OFF)
