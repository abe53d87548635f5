"""Builds the wheel: the scenarios of the repository go into the package, with the scripts that they start.

``pyproject.toml`` names this class for setuptools, which loads the file by itself: it imports no room. In an editable
install nothing is copied, since the scenarios lie beside the package then (``chaos/cli/paths.py``).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

SCENARIOS = "scenarios"
"""The directory beside the package, and the one in the package of a wheel."""

_SUFFIXES = frozenset({".json", ".py", ".sh", ".yaml"})
_OF_THE_REPOSITORY = frozenset({"conftest.py"})
"""Which scenarios its own tests run every day."""


def scenario_files(root: Path) -> list[Path]:
    """Return the files of the scenarios in the repository at ``root``, sorted: no caches, and nothing hidden."""
    files = []
    for path in sorted((root / SCENARIOS).rglob("*")):
        parts = path.relative_to(root).parts
        if path.suffix in _SUFFIXES and path.name not in _OF_THE_REPOSITORY and path.is_file():
            files += [] if any(part.startswith((".", "__")) for part in parts) else [path]
    return files


class BuildPy(build_py):  # type: ignore[misc]
    """Copies the modules as setuptools does, and the scenarios."""

    def run(self) -> None:
        """Copy everything anew, so that a file of an earlier build is not in the wheel."""
        super().run()
        if getattr(self, "editable_mode", False):
            return
        shutil.rmtree(self._place(), ignore_errors=True)
        for path, copy in self._copies():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return what a build writes, for a later removal of an installation."""
        copies = [] if getattr(self, "editable_mode", False) else [str(copy) for _, copy in self._copies()]
        return [*super().get_outputs(include_bytecode), *copies]

    def get_source_files(self) -> list[str]:
        """Return what a source distribution holds."""
        return [*super().get_source_files(), *(str(path) for path, _ in self._copies())]

    def _place(self) -> Path:
        return Path(self.build_lib, "chaos", SCENARIOS)

    def _copies(self) -> list[tuple[Path, Path]]:
        files = scenario_files(Path())
        return [(path, self._place() / path.relative_to(SCENARIOS)) for path in files]
