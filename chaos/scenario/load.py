"""Loading a scenario: text to nodes, variables and matrix to cells, cells to models. Reports every problem at once."""

from __future__ import annotations

from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from chaos.scenario import lines as places
from chaos.scenario import rules
from chaos.scenario.completion import Origin, Unfinished, conflicts, may_be_completed, merged
from chaos.scenario.errors import MAX_PROBLEMS, Problem, Problems, ScenarioError, printable
from chaos.scenario.known_findings import FILE as KNOWN_FINDINGS
from chaos.scenario.known_findings import finding_of
from chaos.scenario.lines import Lines, locate
from chaos.scenario.matrix import MAX_CELLS, count_cells, expand
from chaos.scenario.messages import complaints
from chaos.scenario.models.scenario import Finding, Scenario
from chaos.scenario.models.terms import FROM_FILE
from chaos.scenario.names import KnownNames
from chaos.scenario.references import LITERAL_SECTIONS, Allowance, check_references, count_nodes, fill, references_of
from chaos.scenario.source import Source, read_source
from chaos.scenario.variables import Declared, Value, apply_settings, declare
from chaos.scenario.yaml_nodes import Mapping, Scalar, parse

MAX_UNITS = 5_000_000
"""Most scalars and inserted characters in all cells of a file together."""

MAX_RANKS_IN_ALL = 20_000_000
"""Most ranks of all cells of a file together: every cell is planned, and a plan is made rank by rank."""


@dataclass(frozen=True)
class Cell:
    """One combination of the matrix.

    ``name`` is empty without a matrix. ``values`` holds the value of every variable and axis. ``lines`` holds the
    places of values in the file. ``origins`` holds the places in the job's own files of values that the scenario leaves
    out, by dotted path, and ``facts`` further values of these files, by the names that plans use.
    """

    name: str
    values: dict[str, Any]
    scenario: Scenario
    lines: Lines
    origins: Mapped[str, Origin] = field(default_factory=dict)
    facts: Mapped[str, Origin] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedScenario:
    """A scenario file as read, and its cells in the order of the matrix."""

    path: Path
    text: str
    cells: tuple[Cell, ...]


def load_scenario(
    path: str | Path, *, settings: Mapped[str, str] | None = None, names: KnownNames | None = None
) -> LoadedScenario:
    """Load and check a scenario file.

    ``settings`` are values from the command line, as text that is typed like a YAML scalar; each sets a variable or
    pins an axis of the matrix. ``names`` are the registered names; without them kinds and platforms are not checked.

    Raises ScenarioError with all problems of the file.
    """
    path = Path(path)
    source = read_source(path)
    problems = Problems()
    root = parse(source, problems)
    _check_version(root, source, problems)
    declared = declare(root, source, problems)
    for problem in apply_settings(declared, settings or {}):
        problems.append(problem)
    used = check_references(root, declared, source, problems)
    _check_size(root, declared, used, source, problems)
    cells = _Cells(path, root, source, names or KnownNames(), declared, used)
    try:
        loaded = cells.load()
    except OverflowError:
        message = f"the variables make this scenario hold more than {MAX_UNITS} values and characters"
        raise ScenarioError([*problems, source.problem(1, 1, message)]) from None
    if problems or cells.problems:
        raise ScenarioError([*problems, *cells.problems])
    if (ranks := sum(cell.scenario.cluster.ranks for cell in loaded)) > MAX_RANKS_IN_ALL:
        line, column = Lines(root).nearest("cluster.ranks")
        message = f"the {len(loaded)} cells have {ranks:,} ranks in all; {MAX_RANKS_IN_ALL:,} is the limit"
        raise ScenarioError([source.problem(line, column, message, text="ranks")])
    return LoadedScenario(path, source.text, _with_known_finding(path, loaded))


def _with_known_finding(path: Path, cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the cells with the finding that is kept for them outside the scenario. Raises ScenarioError."""
    name = cells[0].scenario.name
    if (known := finding_of(path, name)) is None:
        return cells
    if cells[0].scenario.finding is not None:
        line, column = cells[0].lines.nearest("finding")
        message = f"{name} has a finding here and another one in {KNOWN_FINDINGS}"
        raise ScenarioError([Problem(printable(str(path)), line, column, message, hint="take one of them out")])
    kept = {"finding": Finding(**known.model_dump(exclude={"failing"})), "failing": known.failing}
    return tuple(replace(cell, scenario=cell.scenario.model_copy(update=kept)) for cell in cells)


def _check_version(root: Mapping, source: Source, problems: Problems) -> None:
    hint = "a scenario begins with the line 'chaos: 1'"
    if (entry := root.entries.get("chaos")) is None:
        first = next(iter(root.entries.values()), None)
        line, column = (first.line, first.column) if first else (root.line, root.column)
        raise ScenarioError([*problems, source.problem(line, column, "the first key must be 'chaos'", hint=hint)])
    if next(iter(root.entries)) != "chaos":
        problems.append(source.problem(entry.line, entry.column, "'chaos' must be the first key", text="chaos"))
    node = entry.value
    value = node.value if isinstance(node, Scalar) else None
    if (not isinstance(value, int) or isinstance(value, bool) or value != 1) and not node.broken:
        text = node.text if isinstance(node, Scalar) else ""
        message = "the version of the scenario language must be 1"
        problems.append(source.problem(node.line, node.column, message, text=text, hint=hint))


def _check_size(
    root: Mapping, declared: Declared, used: dict[str, frozenset[str]], source: Source, problems: Problems
) -> None:
    """Refuse a matrix that is too large before any cell is made."""
    count = count_cells(declared)
    varying = {key for key, names in used.items() if names & declared.axes.keys()}
    if varying & rules.SECTIONS:
        varying |= rules.SECTIONS  # The rules then look at all of them in every cell.
    message = ""
    if count > MAX_CELLS:
        shown = str(count) if count < 10**12 else "far too many"
        message = f"the matrix has {shown} cells; {MAX_CELLS} is the limit"
    elif count * (count_nodes(root, varying) + len(declared.variables)) > MAX_UNITS:
        message = f"the matrix has {count} cells that hold more than {MAX_UNITS} values in all"
    if message:
        line, column = Lines(root).nearest("matrix")
        raise ScenarioError([*problems, source.problem(line, column, message, text="matrix")])


@dataclass
class _CellProblem:
    """A problem, the first cell that has it, and the number of cells that have it.

    ``shows_values`` says that the message names its variables, so that the cell adds nothing.
    """

    problem: Problem
    cell: str
    shows_values: bool
    count: int = 1


class _Cells:
    """Makes the cells. Parts that no axis touches are filled in and validated once."""

    def __init__(
        self,
        path: Path,
        root: Mapping,
        source: Source,
        names: KnownNames,
        declared: Declared,
        used: dict[str, frozenset[str]],
    ) -> None:
        self.path, self.root, self.source, self.names, self.declared = path, root, source, names, declared
        self._steady = {key for key, used_there in used.items() if not used_there & declared.axes.keys()}
        self._filled: set[str] = set()
        if names.complete is not None and may_be_completed(_keys(root, "job"), _keys(root, "cluster")):
            self._filled = {"job", "cluster"}
            self._steady -= self._filled
        self._origins: dict[str, Origin] = {}
        self._facts: dict[str, Origin] = {}
        self._plain: dict[str, Any] = {}
        self._models: dict[str, Any] = {}
        self._problems_by_place: dict[tuple[str, int, int, str], _CellProblem] = {}
        self._values: dict[str, Value] = {}
        self._cell = ""
        self._cells_made = 0
        self._allowance = Allowance(MAX_UNITS)

    def load(self) -> tuple[Cell, ...]:
        """Return all valid cells; ``problems`` then holds the problems of the others."""
        lines = Lines(self.root)
        self._plain = self._literal()
        cells = []
        for name, values in expand(self.declared):
            self._cell, self._values = name, values
            self._cells_made += 1
            scenario = self._scenario()
            if len(self._problems_by_place) >= MAX_PROBLEMS:
                break
            if scenario is not None and not self._problems_by_place:
                # Else every cell would hold a copy of all axes.
                scenario = scenario.model_copy(update={"matrix": self._plain["matrix"]})
                data = {variable: value.data for variable, value in values.items()}
                cells.append(Cell(name, data, scenario, lines, self._origins, self._facts))
        return tuple(cells)

    @property
    def problems(self) -> list[Problem]:
        """Problems of the cells. A problem that not every cell has names the first cell that has it."""
        return [
            entry.problem
            if entry.count == self._cells_made or entry.shows_values
            else replace(entry.problem, message=f"{entry.problem.message} (in cell {entry.cell})")
            for entry in self._problems_by_place.values()
        ]

    def _literal(self) -> dict[str, Any]:
        """Return the sections that hold no references. Their own problems were reported when they were read."""
        axes = {name: [value.data for value in values] for name, values in self.declared.axes.items()}
        variables = {name: value.data for name, value in self.declared.variables.items()}
        return {"chaos": 1, "variables": variables, "matrix": axes}

    def _scenario(self) -> Scenario | None:
        plain = {key: self._section(key, entry.value) for key, entry in self.root.entries.items()}
        plain["chaos"] = 1
        found_before = len(self._problems_by_place)
        if self._filled:
            completed = self._complete(plain)
            if completed is None:
                return None
            plain = completed
        if not (self._models and rules.SECTIONS & self.root.entries.keys() <= self._steady):
            rules.check(plain, self.names, self._report)
        scenario = None
        try:
            scenario = Scenario.model_validate({**plain, **self._models}, context=FROM_FILE)
        except ValidationError as error:
            # What comes as a model was valid before, so the errors speak of plain data only.
            for complaint in complaints(error.errors(include_url=False), plain):
                self._report(complaint.path, complaint.message, complaint.hint, on_key=complaint.on_key)
                if len(self._problems_by_place) >= MAX_PROBLEMS:
                    break
        if scenario is not None and not self._models and len(self._problems_by_place) == found_before:
            self._models = {key: getattr(scenario, key) for key in self._steady if key in Scenario.model_fields}
        return scenario

    def _complete(self, plain: dict[str, Any]) -> dict[str, Any] | None:
        """Return the cell's data with the values of the job's own files; None if these cannot be used."""
        assert self.names.complete is not None
        self._origins, self._facts = {}, {}
        completion = self.names.complete(Unfinished(plain, self.path, Lines(self.root)))
        if completion is None:
            return plain
        for problem in completion.problems:
            self._note(problem, shows_values=False)
        if completion.problems:
            return None
        for path, message, hint in conflicts(plain, completion.values):
            self._report(path, message, hint)
        self._facts = dict(completion.facts)
        plain, self._origins = merged(plain, completion.values)
        return plain

    def _section(self, key: str, node: Any) -> Any:
        if key not in self._plain and key in self._steady:
            self._plain[key] = fill(node, self._values, self._allowance)
        return self._plain[key] if key in self._plain else fill(node, self._values, self._allowance)

    def _report(self, path: places.Path, message: str, hint: str = "", *, on_key: bool = False) -> None:
        place = locate(self.root, path)
        if place.broken or (path and path[0] in LITERAL_SECTIONS):
            return
        if (origin := self._origins.get(".".join(map(str, path)))) is not None:
            self._note(origin.problem(f"{origin.key}: {message}", hint))
            return
        line, column, text = place.line, place.column, _last_key(path) if place.exact else ""
        node = place.node
        used: list[str] = []
        if isinstance(node, Scalar) and node.text and not on_key:
            line, column, text = node.line, node.column, node.text
            used = [f"{name}={self._values[name].shown[:40]}" for name in references_of(node)]
            message += f" ({', '.join(used)})" if used else ""
        self._note(self.source.problem(line, column, message, text=text, hint=hint), shows_values=bool(used))

    def _note(self, problem: Problem, *, shows_values: bool = False) -> None:
        key = (problem.file, problem.line, problem.column, problem.message)
        entry = self._problems_by_place.get(key)
        if entry is not None:
            entry.count += 1
        elif len(self._problems_by_place) < MAX_PROBLEMS:
            self._problems_by_place[key] = _CellProblem(problem, self._cell, shows_values)


def _keys(root: Mapping, section: str) -> object:
    """Return the keys of a section as the file writes them; None if a variable replaces the section."""
    entry = root.entries.get(section)
    return () if entry is None else entry.value.entries if isinstance(entry.value, Mapping) else None


def _last_key(path: places.Path) -> str:
    return path[-1] if path and isinstance(path[-1], str) else ""
