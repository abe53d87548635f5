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
from importlib import import_module
from pathlib import Path

import pytest

from chaos.base.registry import registry

REPOSITORY = Path(__file__).parents[2]

PACKAGE_OF_PYTHON = "a package of Python, or the probe that looks for it"
PROGRAM = "a program whose lines are read"
FORM = "a form of checkpoints"
DEFAULT = "what a scenario says by leaving the key out"
COMMAND = "a command of that name"
PROBE = "a probe of that name"
DRAWN = "a fault of random scenarios"


@dataclass(frozen=True)
class Things:
    """Things of one entry point group.

    ``aside`` are directories whose files may name each of them. ``words`` are files in which the word means something
    else, with what it means there. ``homonyms`` are names that mean something else in many files: one counts only where
    it is compared with a kind, or given as one.
    """

    group: str
    aside: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    homonyms: Mapping[str, str] = field(default_factory=dict)

    def own(self, name: str) -> Path:
        """The package of one of them, or its module where that is all it has."""
        path = Path(*registry(self.group).points[name].module.split("."))
        return path.with_suffix(".py") if path.parent == Path("chaos") / self.group else path.parent

    def named_elsewhere(self) -> list[tuple[str, str]]:
        """Every file that names one of them and is not of it, with the name."""
        owners = {name: self.own(name) for name in registry(self.group).names()}
        return [
            (str(file), name)
            for file, (texts, kinds) in literals_by_file().items()
            if not any(file.is_relative_to(one) for one in self.aside)
            for name in sorted((texts - self.homonyms.keys() | kinds) & owners.keys())
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
            "chaos/jobs/torchft/job.py": "the only one that jobs of torchft can have",
            "chaos/observe/logs/ttp/log.py": "a mark in lines of the SDK's log",
            "chaos/selftest/defects/mechanisms/repair.py": "what a check says of a run with a seeded defect",
        },
    ),
    Things(
        "jobs",
        aside=("chaos/rehearsal",),
        words={
            "chaos/agent/torch/hooks.py": PACKAGE_OF_PYTHON,
            "chaos/agent/torch/seeds.py": PACKAGE_OF_PYTHON,
            "chaos/bootstrap.py": PACKAGE_OF_PYTHON,
            "chaos/checks/mechanism/sdk.py": "a directory of the stand-ins",
            "chaos/cli/commands/doctor.py": PACKAGE_OF_PYTHON,
            "chaos/doctor/packages.py": PACKAGE_OF_PYTHON,
            "chaos/doctor/probes.py": PACKAGE_OF_PYTHON,
            "chaos/doctor/vendor_interface.py": PACKAGE_OF_PYTHON,
            "chaos/init/loops.py": PACKAGE_OF_PYTHON,
            "chaos/init/survey.py": PACKAGE_OF_PYTHON,
            "chaos/init/torch/owners.py": PACKAGE_OF_PYTHON,
            "chaos/jobs/mindformers/job.py": PACKAGE_OF_PYTHON,
            "chaos/jobs/mindspeed/constraints.py": FORM,
            "chaos/jobs/torchft/job.py": PACKAGE_OF_PYTHON,
            "chaos/observe/logs/error_line.py": PROGRAM,
            "chaos/observe/logs/mindformers_log.py": PROGRAM,
            "chaos/observe/logs/mindspore_log.py": PROGRAM,
            "chaos/observe/logs/torch/mindspeed_log.py": PROGRAM,
            "chaos/observe/logs/torch/rank_log.py": PROGRAM,
            "chaos/plan/checkpoints/end_of_life.py": FORM,
            "chaos/plan/traits.py": FORM,
            "chaos/platforms/remote_requirements.py": PACKAGE_OF_PYTHON,
            "chaos/platforms/kubernetes/names.py": "a framework, as Ascend Operator calls it",
            "chaos/run/prepare/needs.py": PACKAGE_OF_PYTHON,
            "chaos/run/prepare/prepare.py": PACKAGE_OF_PYTHON,
            "chaos/run/prepare/measured_job.py": PACKAGE_OF_PYTHON,
            "chaos/run/prepare/versions.py": PACKAGE_OF_PYTHON,
            "chaos/trends/from_result.py": PACKAGE_OF_PYTHON,
            "chaos/trends/row.py": PACKAGE_OF_PYTHON,
            "chaos/scenario/models/defaults.py": DEFAULT,
            "chaos/store/baseline_key.py": "the key of a job",
        },
    ),
    Things(
        "kinds",
        aside=("chaos/rehearsal", "chaos/selftest"),
        homonyms={
            "exit": "a handler of MindSpore's, a phase, a strategy of MindCluster's agent",
            "link": "a command of iproute2, a layer of the device's errors",
            "pause": "a phase, a state of a switch of the cluster's",
        },
        words={
            "chaos/agent/acts.py": "the agent's act of that name: it imports nothing of the harness",
            "chaos/cli/commands/init/writing.py": "the fault of a first scenario, if the user names none",
            "chaos/doctor/network.py": PROBE,
            "chaos/doctor/probes.py": PROBE,
            "chaos/faults/cluster/pod_network_partition.py": "an action of Chaos Mesh",
            "chaos/faults/example.py": "what ends the job of an example",
            "chaos/faults/nodes/node_oom.py": "the agent's act of that name",
            "chaos/machine/linux/masking.py": "a word before `key` that makes it no secret",
            "chaos/mechanisms/arf/recipe.py": DRAWN,
            "chaos/mechanisms/drawing.py": DRAWN,
            "chaos/mechanisms/online/mechanism.py": DRAWN,
            "chaos/mechanisms/elastic/recipe.py": DRAWN,
            "chaos/mechanisms/tre/recipe.py": DRAWN,
            "chaos/plan/job_effect.py": "an effect",
            "chaos/platforms/docker/death.py": "an event of Docker's",
            "chaos/platforms/docker/limits.py": "an event of Docker's",
            "chaos/platforms/ssh/kind.py": PROBE,
            "chaos/soak/kill_soak.py": "a round of the soak",
        },
    ),
)
BY_GROUP = pytest.mark.parametrize("things", THINGS, ids=[one.group for one in THINGS])


def literals(source: str) -> set[str]:
    """All texts of a source that are no docstrings."""
    nodes = list(ast.walk(ast.parse(source)))
    entries = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in entries)
    return {node.value for node in constants if isinstance(node.value, str)}


def kinds(source: str) -> set[str]:
    """The texts of a source that are compared with a kind, or given as one in a mapping."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and _is_kind(node.left):
            found |= {text for comparator in node.comparators for text in literals(ast.unparse(comparator))}
        elif isinstance(node, ast.Dict):
            given = zip(node.keys, node.values, strict=True)
            values = [value for key, value in given if isinstance(key, ast.Constant) and key.value == "kind"]
            found |= {one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return found


def _is_kind(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "kind") or (
        isinstance(node, ast.Name) and node.id == "kind"
    )


@cache
def literals_by_file() -> dict[Path, tuple[set[str], set[str]]]:
    """The texts of each file of chaos/, and those of them that stand for a kind; read once for all groups."""
    paths = sorted((REPOSITORY / "chaos").rglob("*.py"))
    sources = {path.relative_to(REPOSITORY): path.read_text() for path in paths}
    return {path: (literals(source), kinds(source)) for path, source in sources.items()}


def imported_kinds(path: Path) -> set[str]:
    """The names of fault kinds that a file imports as a constant: alone, or in a collection of texts."""
    names = set(registry("kinds").names())
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chaos.faults."):
            module = import_module(str(node.module))
            for value in (getattr(module, alias.name, None) for alias in node.names):
                texts = value if isinstance(value, (tuple, set, frozenset, dict)) else (value,)
                found |= {text for text in texts if isinstance(text, str)} & names
    return found


def test_no_file_outside_the_families_asks_for_a_kind_by_a_constant_of_its_family() -> None:
    files = [path for path in (REPOSITORY / "chaos").rglob("*.py") if path.relative_to(REPOSITORY).parts[1] != "faults"]
    found = [
        f"{path.relative_to(REPOSITORY)}: {kind}" for path in sorted(files) for kind in sorted(imported_kinds(path))
    ]
    assert found == [], "ask a property of the kind: chaos/plan/effect.py, chaos/plan/job_effect.py"


def test_an_imported_constant_is_found_alone_and_among_others(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text("from chaos.faults.device_errors.proof_link import ACTION, KIND\n")
    assert imported_kinds(source) == {"link"}
    source.write_text("from chaos.faults.rank_acts.proof import KINDS\n")
    assert imported_kinds(source)


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
        for file, (texts, _) in literals_by_file().items()
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
    assert kinds('a = "exit"\nb = one.kind in ("link", "hang")\nc = {"kind": "kill", "name": "uce"}\n') == {
        "link",
        "hang",
        "kill",
    }
    things = Things("platforms")
    assert things.own("docker") == Path("chaos/platforms/docker")
    assert Things("jobs").own("mindspore") == Path("chaos/jobs/mindspore.py")
    assert ("chaos/scenario/models/scenario.py", "local") in things.named_elsewhere()
