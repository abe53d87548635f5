"""The wheel of this repository, built without a network from a copy of the sources, and a place to install it into."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.documents.blocks import ROOT

SOURCES = ("chaos", "docs", "scenarios")
FILES = ("LICENSE", "README.md", "pyproject.toml")


def build_wheel(directory: Path) -> Path:
    """Return a wheel in ``directory``. Nothing is written into the repository.

    Skips the test where there is no setuptools to build with: Python 3.12 and later make environments without it.
    """
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed in this environment, and no network may be asked for it")
    sources, wheels = directory / "sources", directory / "wheels"
    for name in SOURCES:
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, sources / name)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    call = [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(wheels), str(sources)]
    ended = subprocess.run(call, capture_output=True, text=True, env=_without_settings())
    assert ended.returncode == 0, ended.stderr
    (wheel,) = wheels.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, place: Path) -> Path:
    """Return the directory of programs of a clean environment with the wheel, made without a network."""
    programs = bare_environment(place)
    python = str(programs / "python")
    options = ["--quiet", "--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    call = [sys.executable, "-m", "pip", "--python", python, "install", *options, str(wheel)]
    ended = subprocess.run(call, capture_output=True, text=True, env=_without_settings())
    assert ended.returncode == 0, ended.stderr
    return programs


def bare_environment(place: Path, python: str = sys.executable, *more: str) -> Path:
    """Return the directory of programs of a clean environment with what the wheel requires, and ``more`` packages.

    The packages are links to those of this environment, so nothing else of it can be imported.
    """
    made = subprocess.run([python, "-m", "venv", "--without-pip", str(place)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (packages,) = place.glob("lib/python*/site-packages")
    for found in (*_required("chaos-ascend"), *map(distribution, more)):
        _link(found, packages)
    return place / "bin"


def _required(name: str) -> list[Distribution]:
    """Return what the base install of a package asks for, and what that asks for in turn."""
    found: dict[str, Distribution] = {}
    names = [name]
    while names:
        for text in distribution(names.pop()).requires or ():
            requirement = Requirement(text)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and (key := re.sub(r"[-_.]+", "-", requirement.name).lower()) not in found:
                found[key] = distribution(requirement.name)
                names.append(key)
    return list(found.values())


def _link(found: Distribution, packages: Path) -> None:
    tops = {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        link = packages / top
        if not link.exists():
            link.symlink_to(Path(str(found.locate_file(top))))


def _without_settings() -> dict[str, str]:
    """Return the environment without the settings of a pip that runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
