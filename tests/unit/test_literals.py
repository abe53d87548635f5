"""The name of a thing that is added stands in its own package as a literal, and nowhere else in chaos/.

Whoever asks for it by its name elsewhere would have to be found when another one is added. What a thing is, its object
says, which is registered under the name. The same word may mean something else: such files are listed, with the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from chaos.base.registry import registry

REPOSITORY = Path(__file__).parents[2]

PACKAGE_OF_PYTHON = "a package of Python, or the probe that looks for it"
PROGRAM = "a program whose lines are read"
FORM = "a form of checkpoints"
DEFAULT = "what a scenario says by leaving the key out"
COMMAND = "a command of that name"


@dataclass(frozen=True)
class Things:
    """Things of one entry point group.

    ``aside`` are directories whose files may name each of them. ``words`` are files in which the word means something
    else, with what it means there.
    """

    group: str
    aside: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    def own(self, name: str) -> Path:
        """The package of one of them, or its module where that is all it has."""
        path = Path(*registry(self.group).points[name].module.split("."))
        return path.with_suffix(".py") if path.parent == Path("chaos") / self.group else path.parent

    def named_elsewhere(self) -> list[tuple[str, str]]:
        """Every file that names one of them and is not of it, with the name."""
        owners = {name: self.own(name) for name in registry(self.group).names()}
        return [
            (str(file), name)
            for file, texts in literals_by_file().items()
            if not any(file.is_relative_to(one) for one in self.aside)
            for name in sorted(texts & owners.keys())
            if not file.is_relative_to(owners[name])
        ]


THINGS = (
    Things(
        "platforms",
        words={
            "chaos/cli/commands/kubernetes.py": COMMAND,
            "chaos/cli/main.py": COMMAND,
            "chaos/history/writer.py": "the writer of a record that runs have",
            "chaos/platforms/docker/names.py": "a routing table of the kernel",
            "chaos/scenario/models/scenario.py": DEFAULT,
        },
    ),
    Things(
        "mechanisms",
        aside=("chaos/rehearsal",),
        words={
            "chaos/observe/logs/ttp/log.py": "a mark in lines of the SDK's log",
            "chaos/selftest/defects/repair.py": "what a check says of a run with a seeded defect",
        },
    ),
    Things(
        "jobs",
        aside=("chaos/rehearsal",),
        words={
            "chaos/bootstrap.py": PACKAGE_OF_PYTHON,
            "chaos/checks/mechanism/sdk.py": "a directory of the stand-ins",
            "chaos/cli/commands/doctor.py": PACKAGE_OF_PYTHON,
            "chaos/doctor/packages.py": PACKAGE_OF_PYTHON,
            "chaos/doctor/probes.py": PACKAGE_OF_PYTHON,
            "chaos/doctor/vendor_interface.py": PACKAGE_OF_PYTHON,
            "chaos/jobs/mindformers/job.py": PACKAGE_OF_PYTHON,
            "chaos/observe/logs/error_line.py": PROGRAM,
            "chaos/observe/logs/mindformers_log.py": PROGRAM,
            "chaos/observe/logs/mindspore_log.py": PROGRAM,
            "chaos/plan/checkpoint.py": FORM,
            "chaos/plan/traits.py": FORM,
            "chaos/platforms/remote_requirements.py": PACKAGE_OF_PYTHON,
            "chaos/platforms/kubernetes/names.py": "a framework, as Ascend Operator calls it",
            "chaos/run/prepare/prepare.py": PACKAGE_OF_PYTHON,
            "chaos/run/prepare/versions.py": PACKAGE_OF_PYTHON,
            "chaos/scenario/models/job.py": DEFAULT,
        },
    ),
)
BY_GROUP = pytest.mark.parametrize("things", THINGS, ids=[one.group for one in THINGS])


def literals(source: str) -> set[str]:
    """All texts of a source that are no docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    told = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in told)
    return {node.value for node in constants if isinstance(node.value, str)}


@cache
def literals_by_file() -> dict[Path, set[str]]:
    """The texts of each file of chaos/, read once for all groups."""
    paths = sorted((REPOSITORY / "chaos").rglob("*.py"))
    return {path.relative_to(REPOSITORY): literals(path.read_text()) for path in paths}


@BY_GROUP
def test_a_name_stands_in_its_own_package_only(things: Things) -> None:
    found = [f"{file}: {name}" for file, name in things.named_elsewhere() if file not in things.words]
    assert found == [], "ask the object that is registered under the name"


def test_no_sentence_of_the_engine_sends_anybody_to_a_platform() -> None:
    """What to use in its place a platform says itself; help and language name them, as docs do."""
    names = "|".join(sorted(registry("platforms").names(), key=len, reverse=True))
    named = re.compile(rf"platform:? ({names})\b")
    rooms = ("plan", "evidence", "checks", "report", "store", "run", "heal", "doctor", "soak")
    found = [
        f"{file}: {text}"
        for file, texts in literals_by_file().items()
        if file.parts[1] in rooms
        for text in texts
        if named.search(text)
    ]
    assert found == []


@BY_GROUP
def test_no_file_is_excused_that_needs_no_excuse(things: Things) -> None:
    assert things.words.keys() - {file for file, _ in things.named_elsewhere()} == set()


def test_a_name_is_found_wherever_it_is_used_and_not_where_it_is_told() -> None:
    source = '"""docker"""\nTABLE = {"ssh": 1}\n"""local"""\nif name == "kubernetes" or name in ("plain",):\n    pass\n'
    assert literals(source) == {"ssh", "kubernetes", "plain"}
    things = Things("platforms")
    assert things.own("docker") == Path("chaos/platforms/docker")
    assert Things("jobs").own("mindspore") == Path("chaos/jobs/mindspore.py")
    assert ("chaos/scenario/models/scenario.py", "local") in things.named_elsewhere()
