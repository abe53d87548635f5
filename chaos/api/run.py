"""Running scenarios from Python: ``chaos run`` in a process of its own, with its answer as data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.api.answer import Answer, read_answer
from chaos.api.errors import ChaosError, UnknownCell
from chaos.api.process import run_to_end
from chaos.api.results import Run
from chaos.api.scenario import as_text, cells_of, find

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

REPORTS = "reports"


class Chaos:
    """Runs scenarios, each with the same settings.

    Args:
        directory: where scenarios are looked for by name, and what relative paths refer to; the working directory.
        reports: the directory that holds one directory for each run.
        sdk: ``auto``, ``standin`` or ``vendor``, as for ``chaos run``.
        platform: the platform of the job, whatever the scenario says.
        inventory: the hosts of the platform ``ssh``.
        cores: the number of cores that a job may take; all that are free by default.
        allow_checks: own checks of the scenarios that may run, as ``module:function``.
        allow_hooks: commands of their hooks that may run, as for a shell.
        on_line: is called with each line that the run prints, from another thread.
    """

    def __init__(
        self,
        *,
        directory: str | Path | None = None,
        reports: str | Path = REPORTS,
        sdk: str = "auto",
        platform: str | None = None,
        inventory: str | Path | None = None,
        cores: int | None = None,
        allow_checks: Iterable[str] = (),
        allow_hooks: Iterable[str] = (),
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self._directory = Path(directory or Path.cwd()).absolute()
        self._options = ["--reports", str(self._directory / reports), "--sdk", sdk]
        self._options += [] if platform is None else ["--platform", platform]
        self._options += [] if inventory is None else ["--inventory", str(self._directory / inventory)]
        self._options += [] if cores is None else ["--cores", str(cores)]
        for name in allow_checks:
            self._options += ["--allow-checks", name]
        for words in allow_hooks:
            self._options += ["--allow-hook", words]
        self._on_line = on_line

    def run(
        self,
        scenario: str | Path,
        *,
        cell: str | None = None,
        seed: int | None = None,
        baseline: str | None = None,
        set: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Run:
        """Run one cell of a scenario to its verdict, and return the run.

        ``scenario`` is a path, or a name as on the command line. ``parameters`` are variables and axes of its matrix;
        those whose names are taken here go into ``set``. ``cell`` names a cell where several are left. Any verdict is
        a return value. Raises ChaosError where there is no verdict, and before anything is started for what is wrong.
        """
        path = find(scenario, self._directory)
        settings = {**(set or {}), **parameters}
        cells = cells_of(path, settings)
        if cell is None and len(cells) > 1:
            names = ", ".join(repr(other.name) for other in cells)
            raise UnknownCell(
                f"{path.name} has {len(cells)} cells, and run() runs one: name it (cell={cells[0].name!r}), give the "
                f"axes of the matrix ({_pinned(cells[0])}), or call run_all(); there are {names}"
            )
        if cell is not None:
            cells = [_named(path, cells, cell)]
        (run,) = self._run(path, cells, settings, seed, baseline).runs()
        return run

    def run_all(
        self,
        scenario: str | Path,
        *,
        seed: int | None = None,
        baseline: str | None = None,
        set: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> tuple[Run, ...]:
        """Run all cells of a scenario, one after the other, also after one that does not pass."""
        path = find(scenario, self._directory)
        settings = {**(set or {}), **parameters}
        return tuple(
            run for cell in cells_of(path, settings) for run in self._run(path, [cell], settings, seed, baseline).runs()
        )

    def _run(
        self,
        path: Path,
        cells: Sequence[Cell],
        settings: Mapping[str, object],
        seed: int | None,
        baseline: str | None,
    ) -> Answer:
        arguments = ["run", str(path), "--json", *self._options]
        arguments += [] if seed is None else ["--seed", str(seed)]
        arguments += [] if baseline is None else ["--baseline", baseline]
        for cell in cells:
            self._begins(path, cell)
            arguments += ["--cell", cell.name] if cell.name else []
        for name, value in settings.items():
            arguments += ["--set", f"{name}={as_text(name, value)}"]
        status, output, errors = run_to_end(self._command(arguments), self._directory, self._on_line)
        try:
            answer = read_answer(path.stem, len(cells), 0, status, output, errors)
            for run in answer.runs():
                self._ended(run)
        except ChaosError as error:
            self._failed(error, errors)
            raise
        return answer

    def _command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs ``chaos`` with these arguments, and ends in order when this process does."""
        from chaos.cli.with_parent import command_of

        return command_of(os.getpid(), arguments)

    def _begins(self, path: Path, cell: Cell) -> None:
        """Do nothing; a subclass may refuse the cell."""

    def _ended(self, run: Run) -> None:
        """Do nothing; a subclass may keep the run."""

    def _failed(self, error: ChaosError, errors: str) -> None:
        """Do nothing; a subclass may keep what the run has printed."""


def run(
    scenario: str | Path,
    *,
    cell: str | None = None,
    seed: int | None = None,
    baseline: str | None = None,
    reports: str | Path = REPORTS,
    sdk: str = "auto",
    platform: str | None = None,
    cores: int | None = None,
    allow_checks: Iterable[str] = (),
    allow_hooks: Iterable[str] = (),
    set: Mapping[str, object] | None = None,
    **parameters: object,
) -> Run:
    """Run one cell of a scenario to its verdict, and return the run. :class:`Chaos` describes the arguments."""
    chaos = Chaos(
        reports=reports,
        sdk=sdk,
        platform=platform,
        cores=cores,
        allow_checks=allow_checks,
        allow_hooks=allow_hooks,
    )
    return chaos.run(scenario, cell=cell, seed=seed, baseline=baseline, set={**(set or {}), **parameters})


def _named(path: Path, cells: Sequence[Cell], name: str) -> Cell:
    from chaos.scenario.errors import suggest

    for cell in cells:
        if cell.name == name:
            return cell
    hint = suggest(name, [cell.name for cell in cells if cell.name], "cells")
    raise UnknownCell(f"{path.name} has no cell {name!r}; {hint}")


def _pinned(cell: Cell) -> str:
    return ", ".join(f"{axis}={cell.values[axis]!r}" for axis in cell.scenario.matrix)
