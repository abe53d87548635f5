"""``chaos list``: one line a scenario below its folder, chosen by tag, mechanism and fault; all about a single one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.jobs.shipped import shipped_scenarios
from tests.kit.shipped import SHIPPED
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]

KILL = """\
chaos: 1
name: kill
description: A rank dies, and the others train on.
tags: [deadly, short]
matrix:
  victim: [0, 1]
cluster: {ranks: 2}
job: {kind: plain, steps: 4, protection: [TTP]}
faults:
  - {kind: kill, target: {rank: "${victim}"}, trigger: {step: 2}}
"""
HANG = KILL.replace("name: kill", "name: hang").replace("kind: kill", "kind: hang").replace("deadly", "quiet")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with two scenarios in two folders, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for folder, name, text in (("ends", "kill", KILL), ("waits", "hang", HANG)):
        (tmp_path / "own" / folder).mkdir(parents=True)
        (tmp_path / "own" / folder / f"{name}.yaml").write_text(text)
    return tmp_path


def test_each_scenario_has_a_line_below_its_folder(chaos: Call, place: Path) -> None:
    assert chaos("list", "own").out.splitlines() == [
        "ends/",
        "  kill  (2 cells) A rank dies, and the others train on.",
        "waits/",
        "  hang  (2 cells) A rank dies, and the others train on.",
        "2 scenarios, 4 cells; chaos list NAME says more",
    ]


def test_a_single_file_is_shown_whole(chaos: Call, place: Path) -> None:
    shown = chaos("list", "own/ends/kill.yaml").out
    for text in ("[deadly, short]", "faults: kill", "2 cells: victim=0  victim=1", "and the others train on."):
        assert text in shown


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--tag", "short"), ["kill", "hang"]),
        (("--tag", "short", "--tag", "quiet"), ["hang"]),
        (("--fault", "kill"), ["kill"]),
        (("--fault", "kill", "--tag", "quiet"), []),
        (("--mechanism", "ttp"), ["kill", "hang"]),
        (("--mechanism", "UCE"), []),
    ],
)
def test_options_choose(chaos: Call, place: Path, options: tuple[str, ...], names: list[str]) -> None:
    listed = json.loads(chaos("list", "own", *options, "--json").out)["scenarios"]
    assert [scenario["name"] for scenario in listed] == names


def test_what_chooses_nothing_says_so(chaos: Call, place: Path) -> None:
    ended = chaos("list", "own", "--mechanism", "RSC")
    assert (ended.code, ended.out) == (0, "")
    assert "none of the 2 scenarios has all of these" in ended.err


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_tag_that_no_scenario_has_is_told_what_was_meant(chaos: Call, place: Path, options: tuple[str, ...]) -> None:
    ended = chaos("list", "own", "--tag", "shrot", *options)
    assert (ended.code, ended.out) == (64, "")
    assert "no scenario has the tag 'shrot'; did you mean 'short'?" in ended.err


@pytest.mark.parametrize(("option", "value"), [("--fault", "kil"), ("--mechanism", "TPT")])
def test_an_unknown_kind_or_mechanism_is_told_what_was_meant(chaos: Call, place: Path, option: str, value: str) -> None:
    ended = chaos("list", option, value)
    assert (ended.code, "did you mean" in ended.err) == (64, True)


def test_the_shipped_scenarios_fit_a_page(chaos: Call, place: Path) -> None:
    lines = chaos("list", str(SHIPPED)).out.splitlines()
    files = len(list(SHIPPED.rglob("*.yaml")))
    assert len(lines) < files + 40
    assert max(map(len, lines)) <= 80
    assert "mechanisms/ttp/" in lines


def test_an_own_scenario_hides_one_of_the_same_name_that_chaos_comes_with(
    chaos: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.cli.paths.shipped_scenarios", lambda: place / "own")
    (place / "scenarios").mkdir()
    (place / "scenarios" / "kill.yaml").write_text(KILL.replace("name: kill", "name: mine"))
    assert chaos("list").out.splitlines() == [
        f"in {place / 'scenarios'}:",
        "  mine  (2 cells) A rank dies, and the others train on.",
        f"in {place / 'own'}:",
        "waits/",
        "  hang  (2 cells) A rank dies, and the others train on.",
        "2 scenarios, 4 cells; chaos list NAME says more",
    ]


def test_the_scenarios_that_chaos_comes_with_are_in_the_package_or_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shipped_scenarios() == SHIPPED
    package, beside = tmp_path / "chaos" / "scenarios", tmp_path / "scenarios"
    monkeypatch.setattr("chaos.__file__", str(package.parent / "__init__.py"))
    for directory in (package, beside):
        directory.mkdir(parents=True)
    assert shipped_scenarios() is None, "a directory of that name may be another package's"
    (beside / "scenario.schema.json").touch()
    assert shipped_scenarios() == beside
    (package / "scenario.schema.json").touch()
    assert shipped_scenarios() == package
