"""A plant: a bug as the changes of a job's script that put it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.kit.jobs.habit_jobs import HABITS

SAVED_OVER = (
    "the resumed job, whose count begins anew, saves over the file that it has loaded. So *loss* comes first, and\n"
    "*checkpoint* names the reason behind it."
)


@dataclass(frozen=True)
class Plant:
    """The old texts of a script, each with the text that replaces it.

    ``options`` are further options of ``chaos init``: a later step of the fault where the bug needs two checkpoints.
    ``first`` is a check that may come before the one with the reason, and ``note`` says why.
    """

    changes: tuple[tuple[str, str], ...]
    options: tuple[str, ...] = ()
    first: str = ""
    note: str = ""


def plant(*changes: tuple[str, str], options: tuple[str, ...] = (), first: str = "", note: str = "") -> Plant:
    """A plant of these changes."""
    return Plant(changes, options, first, note)


@dataclass(frozen=True)
class PlantedJob:
    """A job of tests/habits, its script, and its plants by bug."""

    habit: str
    script: str
    plants: Mapping[str, Plant]

    def sound(self) -> str:
        """The script as it is."""
        return (HABITS / self.habit / self.script).read_text("utf-8")

    def changed(self, bug: str) -> str:
        """The script with a bug. Raises ValueError when an old text does not occur exactly once."""
        text = self.sound()
        for old, new in self.plants[bug].changes:
            if (count := text.count(old)) != 1:
                raise ValueError(f"{self.habit}, {bug}: this text occurs {count} times in {self.script}: {old!r}")
            text = text.replace(old, new)
        return text
