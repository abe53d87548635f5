"""Scenario files are told from other files, and found by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.scenario.errors import ScenarioError
from chaos.scenario.find import find_scenario, is_scenario_file, iter_scenarios
from chaos.scenario.recorded import is_run
from chaos.store.directory import create_run
from tests.unit.conftest import MakeDeep

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"chaos: 1\n", True),
        (b"chaos: 1", True),
        (b"chaos:\n  1\n", True),
        (b"chaos : 1\n", True),
        (b"'chaos': 1\n", True),
        (b'"chaos": 1\r\n', True),
        (b"\xef\xbb\xbf# comment\n\n  # more\n%YAML 1.2\n--- # start\nchaos: 1\n", True),
        (b"# " + b"x" * 10_000 + b"\nchaos: 2\nrubbish: [\n", True),
        (b"{chaos: 1, name: x}\n", True),
        (b"--- {chaos: 1}\n", True),
        (b"{\n  'chaos':1}\n", True),
        (b"  chaos: 1\n", True),
        (b"chaos: 1\n\xff\xfe\x00", True),
        (b"chaos:1\n", False),
        (b"chaoss: 1\n", False),
        (b"name: x\nchaos: 1\n", False),
        (b"- chaos: 1\n", False),
        (b"", False),
        (b"# chaos: 1\n", False),
        (b"---\n---\nchaos: 1\n", False),
        (b"\x00\x01\x02" * 5000, False),
        (b"x" * 2_000_000, False),
        (b"\n" * 100_000 + b"chaos: 1\n", False),
        ("chaos: 1\n".encode("utf-16"), False),
    ],
)
def test_the_first_key_decides(write: Write, text: bytes, expected: bool) -> None:
    assert is_scenario_file(write(text)) is expected


def test_odd_files_are_no_scenarios(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "broken").symlink_to("nowhere")
    odd: list[str | Path] = [
        tmp_path,
        tmp_path / "pipe",
        tmp_path / "broken",
        tmp_path / "none",
        Path("/dev/zero"),
        "nul\0",
        "x" * 9999,
    ]
    assert [is_scenario_file(path) for path in odd] == [False] * len(odd)


def test_a_path_wins_over_a_name(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = write("chaos: 1\n", "library/kill.yaml")
    assert find_scenario("kill", directories=[tmp_path / "none", tmp_path / "library"]) == stored
    assert find_scenario("kill.yaml", directories=[tmp_path / "library"]) == stored
    monkeypatch.chdir(tmp_path)
    write("chaos: 1\n", "kill.yaml")
    assert find_scenario("kill.yaml", directories=[tmp_path / "library"]) == Path("kill.yaml")


def test_a_name_is_found_below_a_directory(write: Write, tmp_path: Path) -> None:
    below = write("chaos: 1\n", "library/faults/kill.yaml")
    write("values: 1\n", "library/other/kill.yaml")
    for name in ("kill", "kill.yaml"):
        assert find_scenario(name, directories=[tmp_path / "library"]) == below
    linked = tmp_path / "link"
    linked.symlink_to(tmp_path / "library")
    assert find_scenario("kill", directories=[linked]) == linked / "faults" / "kill.yaml"
    nearest = write("chaos: 1\n", "library/kill.yaml")
    assert find_scenario("kill", directories=[tmp_path / "library"]) == nearest


def test_a_directory_goes_before_those_that_follow_also_by_what_lies_below_it(write: Write, tmp_path: Path) -> None:
    own = write("chaos: 1\n", "own/faults/kill.yaml")
    write("chaos: 1\n", "shipped/kill.yaml")
    assert find_scenario("kill", directories=[tmp_path / "own", tmp_path / "shipped"]) == own


def test_a_name_that_is_there_twice_below_a_directory_is_refused_with_both_paths(write: Write, tmp_path: Path) -> None:
    both = [write("chaos: 1\n", f"library/{folder}/kill.yaml") for folder in ("a", "b")]
    with pytest.raises(ScenarioError) as refused:
        find_scenario("kill", directories=[tmp_path / "library"])
    (problem,) = refused.value.problems
    assert problem.message == f"there are 2 scenarios 'kill': {both[0]}, {both[1]}"
    assert problem.hint == "give the path of one"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("kill-rnak.yaml", "did you mean 'kill-rank'?"), ("zzz", "scenarios: kill-rank"), ("a\0b", ""), ("x" * 5000, "")],
)
def test_an_unknown_name_gets_a_suggestion(write: Write, tmp_path: Path, name: str, hint: str) -> None:
    write("chaos: 1\n", "kill-rank.yaml")
    write("other: 1\n", "kill-rnak-values.yaml")
    with pytest.raises(ScenarioError) as caught:
        find_scenario(name, directories=[tmp_path])
    assert hint in caught.value.problems[0].hint and "\0" not in str(caught.value)


def test_directories_are_walked_for_scenarios(write: Write, tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "a/y.yaml", ".hidden/c.yaml"):
        write("chaos: 1\n", name)
    write("values: 1\n", "helm.yaml")
    write("chaos: 1\n", "notes.txt")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    given = write("chaos: [\n", "a/y.yaml")
    paths = iter_scenarios([tmp_path, given, tmp_path / "helm.yaml"])
    assert [str(path.relative_to(tmp_path)) for path in paths] == ["a/y.yaml", "a/z.yml", "b.yaml", "helm.yaml"]


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="there is no such file or directory"):
        iter_scenarios([tmp_path / "none"])


def test_directories_too_deep_to_be_searched_are_a_problem(tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "deep")
    with pytest.raises(ScenarioError, match="has more than 256 levels of directories below"):
        iter_scenarios([tmp_path / "deep"])


RECORD = '{"run": "kill-rank-1", "created": "2026-11-25T21:00:00+01:00"}'


def test_what_a_run_has_copied_is_no_scenario(tmp_path: Path) -> None:
    own = tmp_path / "kill-rank.yaml"
    run = tmp_path / "reports" / "of whatever name"
    (run / "job").mkdir(parents=True)
    for path in (own, run / "scenario.yaml", run / "job" / "other.yaml"):
        path.write_text("chaos: 1\n")
    assert len(iter_scenarios([tmp_path])) == 3
    (run / "run.json").write_text(RECORD)
    assert iter_scenarios([tmp_path]) == [own]
    assert iter_scenarios([run]) == []
    assert iter_scenarios([run / "scenario.yaml"]) == [run / "scenario.yaml"]  # named itself


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"run": 3}', '{"run": "fast"}', "[" * 100_000])
def test_a_file_of_that_name_alone_makes_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    (tmp_path / "kill-rank.yaml").write_text("chaos: 1\n")
    assert iter_scenarios([tmp_path]) == [tmp_path / "kill-rank.yaml"]


def test_a_directory_as_the_harness_makes_it_is_a_run(tmp_path: Path) -> None:
    made = create_run(tmp_path, "kill-rank")
    made.lock.release()
    moved = made.path.rename(tmp_path / "kept")
    assert is_run(moved) and not is_run(tmp_path)
