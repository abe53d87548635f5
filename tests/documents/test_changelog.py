"""CHANGELOG.md tells of the version that the package has."""

from __future__ import annotations

import re
import sys
from datetime import date

import chaos
from tests.documents.blocks import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
RELEASES = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\S+)$", CHANGELOG, re.MULTILINE)
"""The releases with their dates, the newest first."""


def numbers(version: str) -> tuple[int, ...]:
    """A version by which releases are ordered."""
    return tuple(map(int, version.split(".")))


def test_the_newest_release_is_the_version_of_the_package() -> None:
    assert RELEASES[0][0] == chaos.__version__


def test_the_version_stands_in_the_package_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"] and project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "chaos.__version__"}


def test_releases_are_dated_and_the_newest_comes_first() -> None:
    versions, dates = zip(*((numbers(version), date.fromisoformat(day)) for version, day in RELEASES), strict=True)
    assert list(versions) == sorted(set(versions), reverse=True)
    assert list(dates) == sorted(dates, reverse=True)


def test_every_heading_of_the_second_level_is_a_release_or_what_is_unreleased() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings == ["[Unreleased]", *(f"[{version}] - {day}" for version, day in RELEASES)]
