"""The directory of the scenarios that chaos comes with."""

from __future__ import annotations

from pathlib import Path

import chaos


def shipped_scenarios() -> Path | None:
    """Return the directory of the scenarios that chaos comes with, or None where there is none.

    A wheel has it in the package (``chaos/wheel.py``), a repository that is installed with ``pip install -e`` beside
    the package.
    """
    package = Path(chaos.__file__).resolve().parent
    for directory in (package / "scenarios", package.parent / "scenarios"):
        if (directory / "scenario.schema.json").is_file():
            return directory
    return None
