"""A baseline that lacks what others of its ranks have recorded, or has it twice, is none: something would be compared
with nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.runs.good_run import LAST, GoodRun, Record
from tests.unit.checks.judging import Judge, said

STEP = LAST - 1

Change = Callable[[list[Record], Record], None]


def lacks_the_step(records: list[Record], record: Record) -> None:
    records.remove(record)


def lacks_the_state(records: list[Record], record: Record) -> None:
    record["parameters"] = {}


def has_it_twice(records: list[Record], record: Record) -> None:
    records.insert(records.index(record), {**record, "loss": "0x1.5p+1"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lacks_the_step, f"rank 1 of the baseline has recorded nothing of step {STEP}, and others have"),
        (lacks_the_state, f"rank 1 of the baseline has no state of step {STEP}"),
        (has_it_twice, f"rank 1 of the baseline has recorded step {STEP} twice"),
    ],
)
def test_what_one_rank_of_the_baseline_has_recorded_otherwise_makes_it_unknown(
    run: GoodRun, judged: Judge, change: Change, reason: str
) -> None:
    assert run.baseline is not None
    for records in run.baseline.values():
        for record in [
            event for event in records if event["event"] == "digest" and (event["rank"], event["step"]) == (1, STEP)
        ]:
            change(records, record)
    judgement = judged(run)
    assert said(judgement, "loss", "unknown", reason)
    assert judgement.verdict == "unknown"


def test_digests_that_are_thinned_out_of_all_ranks_alike_are_compared(run: GoodRun, judged: Judge) -> None:
    assert run.baseline is not None
    for name, records in run.baseline.items():
        run.baseline[name] = [record for record in records if record["event"] != "digest" or record["step"] != STEP]
    assert judged(run).verdict == "pass"
