"""``chaos calibrate`` on runs that are there: it writes, shows, undoes, and refuses what no tolerance helps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import yaml

from chaos.agent.digests import Sampler
from chaos.cli import codes
from chaos.cli.main import entry
from chaos.run.prepare.measured_job import record_of
from chaos.run.prepare.prepare import plan_cell, prepare
from chaos.scenario.load import load_scenario
from tests.kit.runs.good_run import GoodRun, Record, digests_of, good_run, hex_of
from tests.kit.runs.tolerant_run import noisy_state

_SCENARIO = """\
chaos: 1 # the language
name: noisy
cluster: {ranks: 4}
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - kind: kill
    target: {rank: 1}
    trigger: {step: 5, phase: step.end}
expect:
  mechanism: TTP # and no other
"""

Spoil = Callable[[int, Record], None]


def runs(
    reports: Path,
    spoil: Spoil = lambda number, event: None,
    *,
    noise: bool = True,
    changes: Record | None = None,
    job: Mapping[str, str] | None = None,
) -> list[str]:
    """Write three fault-free runs of ``job``; return the options that name them."""
    options = []
    for number in range(3):
        files = good_run().baseline
        assert files is not None
        run = GoodRun(files=files)
        run.replan(scenario="noisy-noise", replica_groups=((0, 1, 2, 3),))
        run.replan(faults=(), resumes=False, resume_step=None, recoveries=(), checkpoint=None, mechanism=None)
        run.replan(**(changes or {}))
        for event in (each for records in files.values() for each in records):
            if event["event"] in ("initial", "digest"):
                state = noisy_state(event["rank"], event.get("step", 0), number if noise else 0)
                event.update(parameters=digests_of(state), samples=Sampler(1).samples(state.items()))
                spoil(number, event)
        directory = run.write(reports / f"noisy-noise-{number}")
        if job is not None:
            facts = json.loads((directory / "run.json").read_text())
            (directory / "run.json").write_text(json.dumps({**facts, "token": "t", "job": job}))
        options += ["--from", f"noisy-noise-{number}"]
    return options


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.yaml").write_text(_SCENARIO)
    return tmp_path


def test_limits_are_written_and_taken_back(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = runs(place / "reports")
    assert entry(["calibrate", "noisy.yaml", *options, "--dry-run"]) == codes.PASS
    assert (place / "noisy.yaml").read_text() == _SCENARIO
    shown = capfd.readouterr().out
    assert "not deterministic" in shown and '+      "moments.*weight": {norm: 0.' in shown
    assert entry(["calibrate", "noisy.yaml", *options]) == codes.PASS
    written = (place / "noisy.yaml").read_text()
    assert "chaos: 1 # the language" in written and "mechanism: TTP # and no other" in written
    assert "# chaos calibrate: 3 fault-free runs on " in written
    loss = load_scenario(place / "noisy.yaml", settings={}).cells[0].scenario.expect.loss
    assert loss is not None and loss.false_alarm == 0.01 and loss.tolerance == 0
    assert set(loss.state) == {"moments.*weight", "moments.*bias", "*weight", "*bias"}
    assert entry(["calibrate", "noisy.yaml", "--undo"]) == codes.PASS
    assert (place / "noisy.yaml").read_text() == _SCENARIO
    assert entry(["calibrate", "noisy.yaml", "--undo"]) == codes.USAGE


def test_equal_runs_need_no_limits(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert entry(["calibrate", "noisy.yaml", *runs(place / "reports", noise=False), "--json"]) == codes.PASS
    found = json.loads(capfd.readouterr().out)
    assert found["deterministic"] is True and found["limits"] is None and found["refusal"] is None
    assert found["measured"] is None and found["written"] is False
    assert yaml.safe_load((place / "noisy.yaml").read_text())["expect"] == {"mechanism": "TTP"}


def other_start(number: int, event: Record) -> None:
    if number == 1 and event["event"] == "initial":
        event["parameters"]["layer1.bias"] = hex_of("other")


def other_batch(number: int, event: Record) -> None:
    if number == 2 and event.get("step") == 12:
        event["batch"] = hex_of("other")


def no_samples(number: int, event: Record) -> None:
    del event["samples"]


def nothing(number: int, event: Record) -> None:
    event.update(parameters={}, loss=None)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (other_start, "begins with other weights"),
        (other_batch, "trains other batches"),
        (no_samples, "have no sample that could be compared"),
        (nothing, "nothing can be measured"),
    ],
)
def test_where_no_tolerance_helps_it_is_unknown_and_nothing_is_written(
    place: Path, capfd: pytest.CaptureFixture[str], spoil: Spoil, why: str
) -> None:
    assert entry(["calibrate", "noisy.yaml", *runs(place / "reports", spoil)]) == codes.UNKNOWN
    assert why in capfd.readouterr().out
    assert (place / "noisy.yaml").read_text() == _SCENARIO


def test_a_run_with_a_fault_and_too_few_runs_are_refused(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = runs(place / "reports")
    assert entry(["calibrate", "noisy.yaml", *options[:4]]) == codes.USAGE
    good_run().write(place / "reports" / "kill-rank-1")
    assert entry(["calibrate", "noisy.yaml", *options, "--from", "kill-rank-1"]) == codes.USAGE
    assert "cannot be measured: it had faults" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scenario": "another-noise"}, "is a run of another-noise, not of noisy"),
        ({"last_step": 11}, "has other steps than noisy: 11, not 12"),
        ({"replica_groups": ((0, 1), (2, 3))}, "has other replica groups than noisy"),
    ],
)
def test_a_run_of_another_job_is_refused(
    place: Path, capfd: pytest.CaptureFixture[str], changes: Record, why: str
) -> None:
    options = runs(place / "reports", changes=changes)
    assert entry(["calibrate", "noisy.yaml", *options]) == codes.USAGE
    assert why in capfd.readouterr().err
    assert (place / "noisy.yaml").read_text() == _SCENARIO


def test_a_run_that_is_named_in_several_ways_is_one_run(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs(place / "reports")
    (place / "reports" / "again").symlink_to("noisy-noise-0")
    names = ["noisy-noise-0", str(place / "reports" / "noisy-noise-0"), "again"]
    assert entry(["calibrate", "noisy.yaml", *(word for name in names for word in ("--from", name))]) == codes.USAGE
    assert "--from: 1 runs, 3 are needed" in capfd.readouterr().err


def test_integers_that_differ_between_fault_free_runs_get_no_limit(place: Path) -> None:
    def counting(number: int, event: Record) -> None:
        count = {"seen": np.array([number if "step" in event else 0, 1])}
        event["parameters"].update(digests_of(count))
        event["samples"].update(Sampler(1).samples(count.items()))

    assert entry(["calibrate", "noisy.yaml", *runs(place / "reports", counting)]) == codes.PASS
    loss = load_scenario(place / "noisy.yaml", settings={}).cells[0].scenario.expect.loss
    assert loss is not None and (loss.state["*seen"].norm, loss.state["*seen"].sample) == (None, None)


def job_of(place: Path) -> dict[str, str]:
    loaded = load_scenario(place / "noisy.yaml", settings={})
    return record_of(prepare(loaded, loaded.cells[0], "standin"))


def test_the_job_is_recorded_beside_its_limits(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = job_of(place)
    assert entry(["calibrate", "noisy.yaml", *runs(place / "reports", job=job)]) == codes.PASS
    assert "do not tell" not in capfd.readouterr().out
    loaded = load_scenario(place / "noisy.yaml", settings={})
    loss = loaded.cells[0].scenario.expect.loss
    assert loss is not None and loss.measured == job
    assert plan_cell(loaded, loaded.cells[0]).equivalence.outdated_by == ()
    assert entry(["calibrate", "noisy.yaml", "--undo"]) == codes.PASS
    assert (place / "noisy.yaml").read_text() == _SCENARIO


def test_the_answer_in_json_has_the_job_and_whether_the_limits_are_written(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = job_of(place)
    for name, recorded in (("with", job), ("without", None)):
        options = [*runs(place / name, job=recorded), "--reports", name, "--json"]
        for more, written in ((["--dry-run"], False), ([], True)):
            assert entry(["calibrate", "noisy.yaml", *options, *more]) == codes.PASS
            answer = json.loads(capfd.readouterr().out)
            assert (answer["measured"], answer["written"], answer["steps"]) == (recorded, written, 12)
            loss = load_scenario(place / "noisy.yaml", settings={}).cells[0].scenario.expect.loss
            assert (loss is not None) == written
        (place / "noisy.yaml").write_text(_SCENARIO)


def test_runs_that_do_not_tell_their_job_give_limits_without_a_record(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert entry(["calibrate", "noisy.yaml", *runs(place / "reports")]) == codes.PASS
    assert "the runs do not tell of which job they are" in capfd.readouterr().out
    assert "measured:" not in (place / "noisy.yaml").read_text()


def test_a_run_of_the_job_before_a_change_is_refused(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = runs(place / "reports", job=job_of(place))
    (place / "noisy.yaml").write_text(_SCENARIO.replace("steps: 12", "steps: 12, seed: 7"))
    assert entry(["calibrate", "noisy.yaml", *options]) == codes.USAGE
    assert "was made with another job than noisy is now (changed since: job.seed)" in capfd.readouterr().err
