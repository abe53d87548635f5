"""Defects whose good run this machine cannot make, because a package is not installed that the job is made with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from chaos.platforms.remote_requirements import MODULES
from chaos.run.prepare.needs import needs_of_job
from chaos.run.prepare.prepare import known_names
from chaos.scenario.load import load_scenario
from chaos.selftest.base import scenario_of
from chaos.selftest.defect import Defect
from chaos.selftest.recorded import archive_of


@dataclass(frozen=True)
class LeftOut:
    """Defects that are left out for one reason. ``packages`` are those that their good runs need and lack."""

    packages: tuple[str, ...]
    defects: tuple[Defect, ...]

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the good runs."""
        return tuple(dict.fromkeys(defect.base for defect in self.defects))


def possible(
    defects: Sequence[Defect], has_module: Callable[[str], bool]
) -> tuple[tuple[Defect, ...], tuple[LeftOut, ...]]:
    """Return the defects whose good runs can be made here, and the others by the packages that they lack.

    A package of the wrong version is there: its defects are tried, and say what they lack.
    """
    lacking = {base: tuple(name for name in packages_of(base) if not has_module(name)) for base in _bases(defects)}
    reasons = dict.fromkeys(packages for packages in lacking.values() if packages)
    return (
        tuple(defect for defect in defects if not lacking[defect.base]),
        tuple(LeftOut(why, tuple(defect for defect in defects if lacking[defect.base] == why)) for why in reasons),
    )


def packages_of(base: str) -> tuple[str, ...]:
    """Return the packages that make a good run, by the needs of its job. A recorded run is not made again."""
    if archive_of(base).exists():
        return ()
    cells = load_scenario(scenario_of(base), names=known_names()).cells
    return tuple(dict.fromkeys(need for cell in cells for need in needs_of_job(cell.scenario) if need in MODULES))


def _bases(defects: Iterable[Defect]) -> list[str]:
    return list(dict.fromkeys(defect.base for defect in defects))
