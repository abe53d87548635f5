"""The command ``chaos selftest``: what it takes, what it prints, with which exit code it ends."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from chaos.cli.commands.selftest import LAYERS
from chaos.cli.main import entry
from chaos.cli.selftest_progress import open_watcher
from chaos.selftest import defect as module
from chaos.selftest import session
from chaos.selftest.base import BaseUnusable
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import Defect, Outcome, Row
from chaos.selftest.evidence import Removal
from chaos.selftest.session import Result
from chaos.selftest.table import print_selftest

DEFECT = next(defect for defect in catalogue() if defect.name == "moments-zeroed")
HELD = Removal("ttp", "run.end", ())
PASSED = Removal("ttp", "the baseline", ("loss",))


def result(*outcomes: Outcome, removals: tuple[Removal, ...] = (HELD,)) -> Result:
    return Result(tuple(Row(DEFECT, outcome, 0.5, f"seen {outcome}") for outcome in outcomes), removals, 12.5)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the selftest was called with; it comes to one defect that was caught."""
    fields: dict[str, object] = {"result": result("caught")}

    def run(defects: list[Defect], **options: object) -> object:
        fields.update(options, names=[defect.name for defect in defects])
        return fields["result"]

    monkeypatch.setattr(session, "run_selftest", run)
    return fields


def test_the_layers_are_those_of_the_defects() -> None:
    assert LAYERS == module.LAYERS


def test_the_list_has_every_defect(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry(["selftest", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == [defect.name for defect in catalogue()]
    assert entry(["selftest", "--list", "--layer", "files", "--only", "tre"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("norm-record-stale") for line in lines)
    assert lines[-1] == f"{len(lines) - 1} defects"


def test_a_name_that_is_none_is_refused_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry(["selftest", "--only", "moments-zeroes"]) == 64
    assert "did you mean 'moments-zeroed'?" in capsys.readouterr().err
    assert entry(["selftest", "--only", "moments-zeroed", "--layer", "job"]) == 64
    assert "there is no such defect" in capsys.readouterr().err


def test_runs_are_not_kept_beside_others(
    asked: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "spoilt").mkdir()
    assert entry(["selftest", "--only", "moments-zeroed", "--keep", str(tmp_path)]) == 64
    assert "it is not empty" in capsys.readouterr().err
    assert "names" not in asked


def test_evidence_is_taken_away_only_where_all_is_tested(asked: dict[str, object], tmp_path: Path) -> None:
    assert entry(["selftest", "--only", "moments-zeroed", "--jobs", "3", "--keep", str(tmp_path)]) == 0
    assert (asked["names"], asked["jobs"], asked["keep"], asked["evidence"]) == (["moments-zeroed"], 3, tmp_path, False)
    assert entry(["selftest", "--layer", "files"]) == 0
    assert asked["evidence"] is True


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (result("caught", "caught"), 0),
        (result("caught", "missed"), 1),
        (result("wrong reason"), 1),
        (result("caught", removals=(HELD, PASSED)), 1),
        (result("caught", "not run"), 2),
        (result("caught", "did not act"), 2),
        (result("missed", "not run"), 1),
    ],
)
def test_the_exit_code_is_0_only_if_all_are_caught(
    asked: dict[str, object], capsys: pytest.CaptureFixture[str], outcome: Result, code: int
) -> None:
    asked["result"] = outcome
    assert entry(["selftest", "--json"]) == code
    answer = json.loads(capsys.readouterr().out)
    assert (answer["total"], answer["caught"]) == (len(outcome.rows), outcome.caught)
    assert answer["rows"][0].keys() >= {"name", "layer", "base", "check", "reason", "outcome", "seconds", "seen"}
    assert len(answer["passed_without"]) == len(outcome.passed)


@pytest.fixture
def without_mindspore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.doctor.has_module", lambda name: name != "mindspore")


def test_without_mindspore_the_defects_of_its_jobs_are_left_out_and_named(
    asked: dict[str, object], without_mindspore: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry(["selftest", "--layer", "files", "--json"]) == 0
    left = json.loads(capsys.readouterr().out)["left_out"]
    tried = asked["names"]
    assert isinstance(tried, list)
    of_files = {defect.name: defect.base for defect in catalogue() if defect.layer == "files"}
    assert sorted([*left, *tried]) == sorted(of_files)
    assert {of_files[name] for name in tried} >= {"exit", "held", "pods", "host-reboot", "tolerant"}
    assert {of_files[name] for name in left} >= {"ttp", "tre", "arf"}

    assert entry(["selftest", "--layer", "files"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"left out: {len(left)} defects in ") and last.endswith("mindspore is not installed here")
    assert "good runs (" in last and "ttp, " in last


def test_a_defect_that_is_asked_for_by_name_is_never_left_out(
    asked: dict[str, object], without_mindspore: None
) -> None:
    assert entry(["selftest", "--only", "moments-zeroed"]) == 0
    assert asked["names"] == ["moments-zeroed"]


def test_where_all_are_left_out_the_call_is_refused(
    asked: dict[str, object],
    without_mindspore: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("chaos.selftest.catalogue.catalogue", lambda: (DEFECT,))
    assert entry(["selftest"]) == 64
    assert "need mindspore, which is not installed" in capsys.readouterr().err


def test_with_mindspore_and_pytorch_nothing_is_left_out(
    asked: dict[str, object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("chaos.doctor.has_module", lambda name: True)
    assert entry(["selftest", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == []
    assert asked["names"] == [defect.name for defect in catalogue()]


def test_a_place_that_cannot_be_had_is_bad_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object, **__: object) -> None:
        raise BaseUnusable("/x is not a directory of this user alone")

    monkeypatch.setattr(session, "run_selftest", run)
    assert entry(["selftest"]) == 64
    assert "not a directory of this user alone" in capsys.readouterr().err


def test_the_table_tells_at_length_what_was_not_caught() -> None:
    stream = io.StringIO()
    print_selftest(result("caught", "missed", removals=(HELD, PASSED)), Console(file=stream, width=160))
    message = stream.getvalue()
    assert "moments-zeroed: missed" in message
    assert DEFECT.reason[0] in message and DEFECT.what in message and "seen missed" in message
    assert "ttp without the baseline: loss passed" in message
    assert (
        "1 of 2 defects caught for the right reason; 1 of 2 times nothing passed without its evidence; 12.5 s"
        in message
    )


def test_progress_is_a_line_for_each_defect() -> None:
    stream = io.StringIO()
    with open_watcher(1, stream=stream) as watcher:
        watcher.note("base ttp: making the run")
        watcher.row(Row(DEFECT, "caught", 0.25, "seen"))
    assert stream.getvalue().splitlines() == ["base ttp: making the run", "caught          0.25 s  moments-zeroed"]
