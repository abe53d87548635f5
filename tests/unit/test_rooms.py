"""docs/architecture.md names every room, and the rooms that each imports: no more than that, and no less."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "chaos"
PAGE = REPOSITORY / "docs" / "architecture.md"

FOR_ALL = {"base"}
"""Rooms that every room may import."""

JUDGING = re.compile(r"(proof|plan)(_\w+)?|rule")
"""Files of a family of faults that judge, or expect. They never import the code that makes a fault."""

ENGINE = {"plan", "evidence", "checks", "report", "store", "run", "heal", "doctor", "soak"}
"""Rooms that get platforms and job kinds by their names, and import none of them."""

PLATFORMS_IN_COMMON = PACKAGE / "platforms" / "network"
"""The one package of `chaos/platforms/` that is no platform: the network between nodes of this host."""

EXPECTING = ("mechanism", "plan", "budgets")
"""Files of a mechanism that say what is expected of it. They are loaded with every plan, and never look at a run."""

IMITATIONS = {Path("rehearsal/sdk/mindio_ttp"), Path("rehearsal/sdk/mindio_ttp/framework_ttp")}
"""Packages that imitate those of a vendor, by name and place."""

ENTRANCES = {"__init__", "__main__"}

MOST_FILES = 25
"""Files at one level of a room, of code and of data: more than these need a directory for each theme."""

_ROW = re.compile(r"^\| `chaos/(?P<room>\w+)(?:/|\.py)` \|[^|]*\| (?P<imports>[^|]*) \|$", re.MULTILINE)


def told() -> dict[str, set[str] | None]:
    """The rooms of the page with what each imports; None for one that may import any."""
    found: dict[str, set[str] | None] = {}
    for row in _ROW.finditer(PAGE.read_text()):
        imports = row["imports"].strip()
        found[row["room"]] = None if imports == "any" else set(re.findall(r"\w+", imports))
    return found


def floors() -> dict[str, int]:
    """The floor of each room in the page's picture, counted from the lowest."""
    picture = PAGE.read_text().partition("From the bottom up")[2].split("```")[1]
    lines = [re.split(r" {2,}", line.strip())[0].split(" · ") for line in picture.strip().splitlines()]
    return {room: floor for floor, names in enumerate(reversed(lines)) for room in names}


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            # `from chaos import agent` names its room behind the word import only.
            yield from (f"chaos.{alias.name}" for alias in node.names) if node.module == "chaos" else (node.module,)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@cache
def rooms() -> dict[str, set[str]]:
    """The rooms of the code with the rooms that each imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in ENTRANCES:
            modules = (one.split(".") for one in imported(path))
            names = {parts[1] for parts in modules if parts[0] == "chaos" and len(parts) > 1}
            found.setdefault(room, set()).update(names - {room} - FOR_ALL - ENTRANCES)
    return {room: {name for name in names if name in found} for room, names in found.items()}


def names_imported(path: Path) -> Iterator[str]:
    """What a file imports, each with its module: ``chaos.faults.values.proof.altered_doubts``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def judges(path: Path) -> bool:
    """Whether a file belongs to the judgement: evidence, checks, mechanisms, and a family's proofs and rules."""
    room = path.relative_to(PACKAGE).parts[0]
    return room in {"evidence", "mechanisms", "checks"} or (room == "faults" and bool(JUDGING.fullmatch(path.stem)))


def test_every_room_stands_on_the_page_and_no_other() -> None:
    assert set(told()) == set(rooms())


def test_every_package_of_a_room_is_named_with_its_room() -> None:
    section = PAGE.read_text().partition("## Rooms")[2].partition("\n## ")[0]
    entries = re.findall(r"^(?:\||-) `chaos/(\w+)/`(.*?)(?=^\||^- |^\n|\Z)", section, re.MULTILINE | re.DOTALL)
    words = {room: " ".join(text for name, text in entries if name == room) for room, _ in entries}
    packages = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")} - {Path()}
    inner = {package for package in packages if package.parent != Path() and "site" not in package.parts[:-1]}
    assert len(inner) > 60
    assert [
        str(package)
        for package in sorted(inner - IMITATIONS)
        if f"`{package.relative_to(package.parts[0])}/`" not in words[package.parts[0]]
    ] == []


@pytest.mark.parametrize("room", sorted(room for room, imports in told().items() if imports is not None))
def test_a_room_imports_what_the_page_says(room: str) -> None:
    assert rooms()[room] == told()[room], f"chaos/{room}: mend the import, or the table in docs/architecture.md"


def test_no_room_imports_one_that_needs_it() -> None:
    assert set(TopologicalSorter(rooms()).static_order()) == set(rooms())


def test_no_room_imports_one_that_stands_above_it_in_the_picture() -> None:
    floor = floors()
    assert set(rooms()) - set(floor) <= {"bootstrap", "wheel"}
    up = [(room, name) for room, names in rooms().items() for name in names if floor.get(name, 0) > floor.get(room, 0)]
    assert up == []


def test_the_agent_and_what_all_may_import_import_no_room() -> None:
    assert [room for room in ("agent", *sorted(FOR_ALL)) if rooms()[room]] == []


def test_no_room_of_the_engine_imports_one_platform_or_job_kind() -> None:
    own = [path.name for path in (PACKAGE / "platforms").iterdir() if path.is_dir() and path != PLATFORMS_IN_COMMON]
    named = tuple(f"chaos.platforms.{name}." for name in own if name != "__pycache__")
    named += ("chaos.jobs.mindspore.", "chaos.jobs.mindformers.", "chaos.rehearsal.")
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] in ENGINE]
    assert named and files
    assert [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in files
        for name in names_imported(path)
        if name.startswith(named)
    ] == []


def test_what_proves_a_fault_never_imports_what_makes_it() -> None:
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if judges(path)]
    assert [path for path in files if path.parts[-3] == "faults"]
    made = [
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in files
        for name in names_imported(path)
        if (parts := name.split("."))[:2] == ["chaos", "faults"] and not JUDGING.fullmatch("".join(parts[3:4]))
    ]
    assert made == []


def test_what_expects_a_mechanism_or_a_fault_never_looks_at_a_run() -> None:
    files = [path for name in EXPECTING for path in sorted((PACKAGE / "mechanisms").glob(f"*/{name}.py"))]
    assert {path.stem for path in files} == set(EXPECTING)
    rules = sorted((PACKAGE / "faults").glob("*/plan*.py"))
    assert rules
    looks = [
        f"{path.relative_to(REPOSITORY)}: {module}"
        for path in (*files, *rules)
        for module in imported(path)
        if (parts := module.split("."))[0] == "chaos"
        and parts[1] not in {"base", "plan", "scenario", "mechanisms"}
        and parts[:3] != list(path.relative_to(REPOSITORY).parts[:3])
    ]
    assert looks == []


def test_no_mechanism_imports_another_and_nobody_imports_one() -> None:
    packages = {path.parent.name for path in (PACKAGE / "mechanisms").glob("*/__init__.py")}
    assert packages
    taken = [
        f"{path.relative_to(REPOSITORY)}: {module}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for module in imported(path)
        if (parts := module.split("."))[:2] == ["chaos", "mechanisms"] and parts[2:3] and parts[2] in packages
        if not path.is_relative_to(PACKAGE.joinpath("mechanisms", parts[2]))
    ]
    assert taken == []


def test_no_room_has_more_files_at_one_level_than_a_reader_can_survey() -> None:
    files: Counter[Path] = Counter(
        path.parent.relative_to(REPOSITORY)
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    assert {path.suffix for path in PACKAGE.rglob("*")} >= {".py", ".yaml"}
    assert {str(directory): count for directory, count in files.items() if count > MOST_FILES} == {}
