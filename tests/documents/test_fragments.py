"""Each file of changelog.d/ has the form that its README describes, and a release takes all of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chaos
from tests.documents.blocks import ROOT

FRAGMENTS = ROOT / "changelog.d"
TYPES = ("added", "changed", "deprecated", "removed", "fixed", "security")
"""The sections of Keep a Changelog, in its order."""

_NAME = re.compile(rf"\+[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(TYPES)})\.md")


def problems(path: Path) -> list[str]:
    """What is wrong with the name or the text of a fragment."""
    text = path.read_text("utf-8")
    wrong = {
        "the name must be +NAME.TYPE.md, in lower case and with a type of the README": not _NAME.fullmatch(path.name),
        "the text must begin with a capital letter or with code": not re.match(r"[A-Z`]", text),
        "the text must end with a full stop and one line feed": not text.endswith(".\n"),
        "the text must be one paragraph without headings and lists": any(
            re.match(r"#|[-*] |$", line) for line in text.splitlines()
        ),
        "a line must have at most 120 characters": any(len(line) > 120 for line in text.splitlines()),
    }
    return [f"{path.name}: {problem}" for problem, applies in wrong.items() if applies]


def build(directory: Path) -> str:
    """Make a release of the repository's metadata in ``directory``; return the changelog."""
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "99.0.0", "--date", "2099-01-31"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return (directory / "CHANGELOG.md").read_text("utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what a release reads and writes."""
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(FRAGMENTS, tmp_path / FRAGMENTS.name)
    return tmp_path


def test_every_fragment_has_the_form_of_the_readme() -> None:
    paths = [path for path in FRAGMENTS.iterdir() if path.name != "README.md"]
    assert [problem for path in paths for problem in problems(path)] == []


@pytest.mark.parametrize("name", ["+a.added.md", "+disk-quota-2.security.md"])
def test_a_fragment_of_that_form_has_no_problems(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("The first sentence goes\nover two lines. `chaos` is the second.\n")
    assert problems(tmp_path / name) == []


@pytest.mark.parametrize("name", ["a.added.md", "+a.md", "+a.feature.md", "+a.added.rst", "+A.added.md", "+.added.md"])
def test_another_name_is_a_problem(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("A sentence.\n")
    assert len(problems(tmp_path / name)) == 1


@pytest.mark.parametrize(
    "text", ["", "\n", "A word\n", "A word.", "a word.\n", "- A.\n", "A.\n\nB.\n", "A.\n## B.\n", "A" * 120 + ".\n"]
)
def test_another_text_is_a_problem(tmp_path: Path, text: str) -> None:
    (tmp_path / "+a.added.md").write_text(text)
    assert problems(tmp_path / "+a.added.md")


def test_a_release_takes_every_fragment_into_its_section(copy: Path) -> None:
    for kind in TYPES:
        (copy / "changelog.d" / f"+trial.{kind}.md").write_text(f"A trial of what is {kind}.\n")
    changelog = build(copy)
    before, _, rest = changelog.partition("## [99.0.0] - 2099-01-31\n")
    release, _, earlier = rest.partition(f"## [{chaos.__version__}]")
    assert "## [Unreleased]" in before and earlier in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"^### (.+)$", release, re.M) == [kind.capitalize() for kind in TYPES]
    for kind in TYPES:
        assert f"- A trial of what is {kind}.\n" in release
    assert [path.name for path in (copy / "changelog.d").iterdir()] == ["README.md"]


def test_a_release_refuses_a_fragment_of_an_unknown_type(copy: Path) -> None:
    (copy / "changelog.d" / "+trial.feature.md").write_text("A trial.\n")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(copy)
    assert b"Invalid news fragment name: +trial.feature.md" in caught.value.stderr
