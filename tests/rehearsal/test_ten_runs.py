"""The verdict does not depend on luck: ten runs in a row give ten passes."""

from __future__ import annotations

import pytest

from tests.rehearsal.kit import Chaos, checks_of, said


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(1, 11))
def test_ten_runs_in_a_row_pass(chaos: Chaos, number: int) -> None:
    done = chaos.run("kill-rank.yaml")
    assert (done.code, done.json["verdict"]) == (0, "pass"), said(
        [*checks_of(done.run.result, "fail"), *checks_of(done.run.result, "unknown")]
    )
    assert done.run.left() == []
