"""A bug that a careless author plants into a sound job ends in *fail*, for the right reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.planted.bugs import BY_ID
from tests.planted.catalogue import JOBS
from tests.planted.runs import run_row
from tests.rehearsal.kit import Chaos


@pytest.mark.nightly
@pytest.mark.parametrize("bug", BY_ID)
@pytest.mark.parametrize("job", JOBS)
def test_a_planted_bug_fails_for_its_reason(job: str, bug: str, fresh: Chaos, tmp_path: Path) -> None:
    row = run_row(job, bug, fresh, tmp_path / "job")
    assert row.is_right, row
