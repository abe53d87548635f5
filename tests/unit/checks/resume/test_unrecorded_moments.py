"""Moments that a file holds and that its rank never records may be lost at the resume: nobody would know."""

from __future__ import annotations

from tests.kit.runs.good_run import GoodRun
from tests.kit.runs.restored_run import restored_run
from tests.unit.checks.judging import Judge, not_passed, said

UNSEEN = "records no such optimizer state as its file holds: moments.layer1.bias, moments.layer1.weight"


def recording_weights_alone() -> GoodRun:
    """The script names its network as the state, and not its optimizer."""
    run = restored_run()
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for event in (entry for records in files.values() for entry in records):
            if "parameters" in event and isinstance(event["parameters"], dict):
                event["parameters"] = {
                    name: text for name, text in event["parameters"].items() if "moments" not in name
                }
    return run


def test_a_rank_that_records_no_moments_of_its_file_is_unknown(judged: Judge) -> None:
    judgement = judged(recording_weights_alone())
    assert len(said(judgement, "resume", "unknown", UNSEEN)) == 4 and judgement.verdict == "unknown"


def test_files_without_moments_ask_for_none(judged: Judge) -> None:
    run = recording_weights_alone()
    for saved in run.saved.values():
        saved.state = {name: array for name, array in saved.state.items() if "moments" not in name}
    assert not_passed(judged(run)) == []
