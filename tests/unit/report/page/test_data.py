"""The samples that the browser tests show have the form of a real page's data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from chaos.checks.judge import judge
from chaos.report.analyze import result_of
from chaos.report.page.facts import environment
from chaos.report.page.write import write_page
from tests.kit.pages.page_data import passing
from tests.kit.runs.good_run import GoodRun, digests_of
from tests.unit.report.page.conftest import PageOf


def keys(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys; excerpts count by their first."""
    if isinstance(value, dict):
        named = [("*", part) for part in list(value.values())[:1]] if path == ".excerpts" else list(value.items())
        for name, part in named:
            yield f"{path}.{name}"
            yield from keys(part, f"{path}.{name}")
    elif isinstance(value, (list, tuple)) and value:
        for part in value:
            yield from keys(part, f"{path}[]")


def test_a_sample_has_the_keys_of_a_page(run: GoodRun, page: PageOf) -> None:
    real, sample = set(keys(asdict(page(run)))), set(keys(passing()))
    assert sample - real == set()
    assert {path for path in real - sample if not path.startswith(".excerpts")} == set()


@pytest.mark.parametrize(("cores", "shown"), [([0], "0"), ([0, 3], "0, 3")])
def test_the_cores_of_the_job_are_shown_as_numbers_and_not_as_a_count(
    run: GoodRun, tmp_path: Path, cores: list[int], shown: str
) -> None:
    directory = run.write(tmp_path / "run")
    result = result_of(directory, judge(directory))
    made = replace(result.made, cores=tuple(cores))
    assert ("core numbers of the job", shown) in environment(replace(result, made=made)).facts


def test_half_a_character_in_a_text_of_a_run_keeps_no_page_from_being_written(run: GoodRun, tmp_path: Path) -> None:
    directory = run.write(tmp_path / "run")
    judgement = judge(directory)
    result = replace(result_of(directory, judgement), scenario="half \ud800")
    assert "half ?" in write_page(directory, judgement, result).read_text("utf-8")


def test_the_page_of_a_changed_checkpoint_names_file_parameter_and_both_digests(run: GoodRun, page: PageOf) -> None:
    saved = run.saved[0]
    name = next(name for name in saved.state if name.endswith("weight"))
    before = digests_of(saved.state)[name]
    saved.state = {**saved.state, name: saved.state[name] + 1}
    facts = [dict(statement.facts) for statement in page(run).statements if statement.verdict == "fail"]
    assert {
        "file": saved.path,
        "parameters": f"{name} (1 of {len(saved.state)} differ)",
        "digest of the saved state expected": before,
        "digest of the saved state seen": digests_of(saved.state)[name],
    }.items() <= facts[0].items()
