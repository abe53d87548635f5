"""Each package that is asked for has its reason in docs/architecture.md, and what the base install asks for is used."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

import pytest
import tomllib

from tests.documents.blocks import ROOT

MODULES = {"protobuf": "google", "pyyaml": "yaml"}
"""Packages whose module has another name."""

PROGRAMS = {"mypy", "pytest-xdist", "ruff", "towncrier", "wheel"}
"""Packages of the extra ``test`` that are started, or used by pip or pytest, and imported nowhere."""


@cache
def project() -> dict[str, Any]:
    fields: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return fields


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0] for requirement in requirements]


def reasons() -> set[str]:
    section = (ROOT / "docs" / "architecture.md").read_text().partition("## Dependencies")[2]
    rows = re.findall(r"^\| ([^|]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    return {name for row in rows for name in row.split(", ")}


@cache
def imported(*rooms: str) -> frozenset[str]:
    found = set()
    for path in [path for room in rooms for path in (ROOT / room).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return frozenset(found)


@pytest.mark.parametrize("package", names(project()["dependencies"]))
def test_what_the_base_install_asks_for_is_imported(package: str) -> None:
    assert MODULES.get(package, package) in imported("chaos")


@pytest.mark.parametrize("extra", ["docker", "ssh", "kubernetes"])
def test_what_an_extra_of_a_platform_asks_for_is_imported(extra: str) -> None:
    for package in names(project()["optional-dependencies"][extra]):
        assert package in imported("chaos")


@pytest.mark.parametrize("extra", ["fuzz", "test"])
def test_what_the_tests_ask_for_is_used(extra: str) -> None:
    for package in names(project()["optional-dependencies"][extra]):
        if not package.startswith("types-") and package not in {"chaos-ascend", *PROGRAMS}:
            assert package in imported("tests"), package


@pytest.mark.parametrize("extra", ["docker", "ssh", "kubernetes", "docs", "fuzz", "test"])
def test_each_package_has_its_reason(extra: str) -> None:
    asked = names([*project()["dependencies"], *project()["optional-dependencies"][extra]])
    assert {name for name in asked if not name.startswith("types-")} - {"chaos-ascend"} <= reasons()
