"""A MindSpore job with dropout that is not bit-exact: calibrated once, a sound resume passes and defects fail."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.rehearsal.kit import Chaos, checks_of

_HERE = Path(__file__).parents[1] / "scenarios"


@pytest.mark.nightly
def test_a_job_with_dropout_passes_within_its_noise_and_fails_beyond_it(fresh: Chaos, tmp_path: Path) -> None:
    for name in ("dropout.yaml", "dropout_mindspore.py"):
        shutil.copy(_HERE / name, tmp_path / name)
    scenario = tmp_path / "dropout.yaml"
    calibrated = fresh("calibrate", scenario, "--runs", "4", "--reports", fresh.reports, "--cores", "1")
    assert calibrated.code == 0, calibrated
    assert "not deterministic" in calibrated.output and "mechanism: none # nothing protects" in scenario.read_text()
    sound = fresh.run(scenario)
    assert sound.code == 0, sound
    for defect in ("masks", "moments", "batch"):
        spoilt = fresh.run(scenario, "--set", f"defect={defect}")
        assert spoilt.code == 1, (defect, spoilt)
        failed = checks_of(spoilt.run.result, "fail")
        assert "loss" in {finding["name"] for finding in failed}, (defect, failed)
