"""Checkpoints that lie where nobody looks for them: a resume from one is unknown, and the reason is the true one."""

from __future__ import annotations

from tests.unit.checks.judging import Judge, said
from tests.unit.restored_run import restored_run


def test_a_file_outside_its_ranks_directory_is_named_as_what_was_not_read(judged: Judge) -> None:
    run = restored_run()
    for name in ("load.begin", "load.end"):
        for one in run.events(name, attempt="resume"):
            one["path"] = one["path"].replace("/rank_", "_")
    (found,) = said(judged(run), "resume", "unknown", "the step to resume from is known")
    assert "which is no file rank_R/PREFIX-EPOCH_STEP.ckpt or .safetensors" in found.seen
    assert found.where
