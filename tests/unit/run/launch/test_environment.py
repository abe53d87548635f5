"""Of the shell's variables those that may change a loss make another baseline, and no others do."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.jobs.kind import JobError
from chaos.platforms.kind import platform_kind
from chaos.run.prepare.environment import deciding
from chaos.run.prepare.inputs import InputChanged, Inputs, planned_inputs
from chaos.run.prepare.registered import Registered
from chaos.scenario.models.scenario import Scenario
from tests.unit.fake_job.kind import FakeJobKind

LOCAL = platform_kind("local")
SHELL = {"HOME": "/root", "OMP_NUM_THREADS": "2", "MS_DEV_X": "1", "HCCL_DETERMINISTIC": "true", "MS_ENABLE_TFT": "{}"}


def test_settings_of_framework_and_libraries_count_and_switches_that_no_job_gets_do_not() -> None:
    assert list(deciding(SHELL)) == ["HCCL_DETERMINISTIC", "MS_DEV_X", "OMP_NUM_THREADS"]


def scenario(**job: object) -> Scenario:
    return Scenario.model_validate(
        {"chaos": 1, "name": "n", "cluster": {"ranks": 2}, "job": {"kind": "fake", "steps": 2, **job}}
    )


def test_arguments_modules_and_settings_are_part_of_the_inputs(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("1")
    (tmp_path / "own.py").write_text("1")
    job = {"arguments": [f"--data={tmp_path}/data.json"], "environment": {"PYTHONPATH": str(tmp_path)}}
    inputs = Inputs(FakeJobKind(), LOCAL, scenario(**job), tmp_path, SHELL)
    assert inputs.changed() == ()
    assert inputs.begun["environment OMP_NUM_THREADS"] == "2"
    (tmp_path / "data.json").write_text("12")
    (tmp_path / "own.py").write_text("12")
    assert inputs.changed() == (f"{tmp_path}/data.json", f"modules below {tmp_path}")


@pytest.mark.parametrize(
    ("platform", "own"),
    [("local", False), ("local-nodes", False), ("docker", True), ("ssh", True), ("kubernetes", True)],
)
def test_the_key_of_a_baseline_has_this_environment_only_where_jobs_get_it(
    platform: str, own: bool, tmp_path: Path
) -> None:
    on = platform_kind(platform)
    inputs = planned_inputs(Registered(FakeJobKind(), on, on, {}), scenario(), tmp_path, SHELL)
    assert ("environment OMP_NUM_THREADS" in inputs.begun) is not own


def test_a_source_that_is_gone_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Inputs(FakeJobKind(), LOCAL, scenario(), tmp_path, {})

    def gone(*_: object) -> None:
        raise JobError("job.script: there is no file x.py")

    monkeypatch.setattr(FakeJobKind, "fingerprint", gone)
    with pytest.raises(InputChanged, match=r"there is no file x\.py, which was there when .*; run it again"):
        inputs.changed()


def test_a_source_that_appears_is_told_apart_from_one_that_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {"script train.py": "as it was", "script old.py": "as it was"}
    monkeypatch.setattr(FakeJobKind, "fingerprint", lambda *_: dict(sources))
    inputs = Inputs(FakeJobKind(), LOCAL, scenario(), tmp_path, {})
    sources.update({"script train.py": "edited", "script made.py": "by the job"})
    del sources["script old.py"]
    change = "script made.py is new, script old.py is gone, script train.py has changed"
    advice = "run it again.*where the job writes the file itself, let it write to its working directory"
    for ask, when in ((inputs.begin, "since the run was planned"), (inputs.changed, "while the run went on")):
        with pytest.raises(InputChanged, match=f"{change} {when}.*{advice}"):
            ask()
