"""Defects of the rollback of an abnormal result (TRE): too far, too often, with a stale or wrong record."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from chaos.selftest.calls import call
from chaos.selftest.defect import Defect, Mutate, file_defect
from chaos.selftest.files import copied, line_changed, line_doubled, removed, rewritten
from chaos.selftest.records import Records, chain, recorded

LOGS = "logs/train/worker_*.log"
RECORD = "job/**/abnormal_global_norm.json"
_STEP = ("step.begin", "step.end", "digest")


_defect = partial(file_defect, base="tre", check="mechanism")


def _norms(change: dict[str, list[float]]) -> Mutate:
    def rewrite(content: bytes) -> bytes:
        return json.dumps({**json.loads(content), **change}).encode()

    return rewritten(RECORD, rewrite)


def _loads_older(records: Records) -> None:
    for record in records.all(attempt="train"):
        if record["event"] in ("load.begin", "load.end", "checkpoint.read"):
            record["path"] = record["path"].replace("-2_1.ckpt", "-1_3.ckpt")


def _goes_back_further(run_dir: Path) -> None:
    """Let every rank take the checkpoint of step 3, and train steps 4 to 6 once more."""

    def change(records: Records) -> None:
        _loads_older(records)
        for begin in records.all("train.begin", initial_step=6):
            begin["initial_step"] = 3
            state = next(
                record for record in records.all("initial", rank=begin["rank"]) if record["mono"] > begin["mono"]
            )
            chosen = [
                record
                for record in records.all(rank=begin["rank"])
                if record["event"] in _STEP and 4 <= record["step"] <= 6
            ]
            for record in chosen:
                state = records.insert(state, **{key: value for key, value in record.items() if key not in _TIMES})

    recorded(change)(run_dir)
    line_changed(LOGS, "after TREError from step 6", "after TREError from step 3")(run_dir)


_TIMES = ("mono", "wall")


def _goes_back_too_little(records: Records) -> None:
    """Leave out the second training of step 7, although it is behind the checkpoint of step 6."""
    for begin in records.all("train.begin", initial_step=6):
        again = [record for record in records.all(rank=begin["rank"], step=7) if record["mono"] > begin["mono"]]
        records.drop([record for record in again if record["event"] in _STEP])


def _scaled_again(records: Records) -> None:
    """Make the fault a second time when step 8 is trained again."""
    once = records.first("fault.scaled")
    again = records.last("step.begin", rank=once["rank"], step=8)
    kept = {key: value for key, value in once.items() if key not in _TIMES}
    records.insert(again, **kept)


def _loads_twice(records: Records) -> None:
    end = records.first("load.end", rank=0)
    begin = records.first("load.begin", rank=0)
    records.insert(end, **{key: value for key, value in begin.items() if key not in _TIMES})


def _never_loads(records: Records) -> None:
    for event in ("load.begin", "load.end"):
        records.drop(records.all(event, rank=1))


def _loads_a_part(records: Records) -> None:
    """Let rank 1 get one parameter of its file, and state that it goes on from it."""
    records.first("load.end", rank=1)["parameters"] = 1


def _not_written(records: Records) -> None:
    """Let the save of step 6 go on in the background on rank 1, without a record of its end."""
    for event in ("checkpoint.begin", "checkpoint.end"):
        records.first(event, rank=1, step=6)["asynchronous"] = True


def _no_second_digest(records: Records) -> None:
    """Keep the record of rank 0's first training of step 7 only."""
    records.drop([records.digest(0, 7)])


def _small(records: Records) -> None:
    """Keep the spike from the reduced gradients: their norm is an ordinary one."""
    for rank in (0, 1):
        first = records.first("digest", rank=rank, step=8)
        first["gradients"]["norm"] = (2.0).hex()


DEFECTS = (
    _defect(
        "tre-rollback-too-far",
        "All ranks went back to the checkpoint before the last.",
        _goes_back_further,
        "to the checkpoint of step 6",
        "loaded what it had saved after step 3",
    ),
    _defect(
        "tre-rollback-too-far-by-its-steps",
        "All ranks repeated three steps more than necessary.",
        _goes_back_further,
        "after recovery 1 training goes on at step 7",
        "rank 0 went on at step 4: step 4 was trained again",
        check="resume",
    ),
    _defect(
        "tre-step-left-out",
        "Step 7 was not trained again after the rollback.",
        recorded(_goes_back_too_little),
        "rank 0 went on at step 8: step 7 was skipped",
        check="resume",
    ),
    _defect(
        "tre-acts-twice",
        "The ranks log two rollbacks for one spike.",
        chain(line_doubled(LOGS, "Resume training after TREError"), line_doubled(LOGS, "before throw TREError")),
        "logs that it resumed after TREError from steps [6, 6], not [6]",
    ),
    _defect(
        "tre-loads-twice",
        "Rank 0 loaded its checkpoint twice.",
        recorded(_loads_twice),
        "rank 0 loaded 2 times",
    ),
    _defect(
        "tre-rank-loads-nothing",
        "Rank 1 went on with the state that it held.",
        recorded(_never_loads),
        "rank 1 loaded no checkpoint",
    ),
    _defect(
        "tre-loads-a-part",
        "Rank 1 loaded one parameter of its checkpoint.",
        recorded(_loads_a_part),
        "rank 1 loaded 1 of ",
    ),
    _defect(
        "norm-record-stale",
        "abnormal_global_norm.json holds a step of an earlier run.",
        _norms({"5": [6.25]}),
        "step 5 has 1 norms, not 0",
    ),
    _defect(
        "norm-record-empty",
        "abnormal_global_norm.json does not hold the step that spiked.",
        rewritten(RECORD, lambda content: b"{}"),
        "step 8 has 0 norms, not 1",
    ),
    _defect(
        "norm-record-missing",
        "There is no abnormal_global_norm.json.",
        removed(RECORD),
        "there is no abnormal_global_norm.json, step 8 should be in it",
    ),
    _defect(
        "norm-record-with-another-norm",
        "abnormal_global_norm.json holds another norm than the gradients had.",
        _norms({"8": [7.0]}),
        "step 8 is in it with 7, rank 0's gradients had 7.5",
    ),
    _defect(
        "norm-record-of-the-step-before",
        "abnormal_global_norm.json names the step before the one that spiked.",
        rewritten(RECORD, lambda content: content.replace(b'"8"', b'"7"')),
        "step 7 has 1 norms, not 0",
    ),
    _defect(
        "norm-record-written-twice",
        "abnormal_global_norm.json holds the abnormal norm twice, as if the step had spiked again.",
        _norms({"8": [7.5, 7.5]}),
        "step 8 has 2 norms, not 1",
    ),
    _defect(
        "norm-record-off-by-a-little",
        "abnormal_global_norm.json holds a norm that is one part in a hundred too large.",
        _norms({"8": [7.575]}),
        "step 8 is in it with 7.575, rank 0's gradients had 7.5",
    ),
    _defect(
        "norm-record-below-the-threshold",
        "abnormal_global_norm.json holds a norm that stops no training.",
        _norms({"8": [4.9]}),
        "step 8 is in it with 4.9, which is below the threshold",
    ),
    _defect(
        "norm-record-with-a-step-of-another-form",
        "abnormal_global_norm.json names the step in a form that no search finds.",
        rewritten(RECORD, lambda content: content.replace(b'"8"', b'"08"')),
        "'08' is no step",
    ),
    _defect(
        "norm-record-cut-off",
        "abnormal_global_norm.json was cut off while it was written.",
        rewritten(RECORD, lambda content: content[:-2]),
        "holds every abnormal step",
        "not JSON",
    ),
    Defect(
        "norm-record-twice",
        "There is a second abnormal_global_norm.json, and nothing shows which file the job reads.",
        "files",
        "tre",
        "mechanism",
        ("there are 2 of that name, and one job writes one",),
        "unknown",
        copied("job/checkpoints/abnormal_global_norm.json", "job/output/abnormal_global_norm.json"),
    ),
    Defect(
        "norm-not-recorded",
        "The norm of rank 0's gradients in the abnormal step is not recorded.",
        "files",
        "tre",
        "mechanism",
        ("step 8 is in it 1 times, rank 0 recorded 0 norms of its gradients there",),
        "unknown",
        recorded(lambda records: records.first("digest", rank=0, step=8).update(gradients=None)),
    ),
    _defect(
        "tre-asks-the-sdk",
        "The SDK stopped and cleaned the ranks, although it takes no part in a rollback.",
        recorded(lambda records: call(records, records.first("load.begin", rank=0), "clean")),
        "online repair acted: handler clean on rank 0",
    ),
    _defect(
        "fault-injected-again-after-rollback",
        "The spike was made a second time when its step was trained again.",
        recorded(_scaled_again),
        "scaled too often on rank 1",
        check="injection",
    ),
    Defect(
        "fault-without-effect",
        "The gradients were scaled, and their norm is ordinary.",
        "files",
        "tre",
        "injection",
        ("the global norm of step 8 came to 2, not 7.5",),
        "unknown",
        recorded(_small),
    ),
    Defect(
        "tre-checkpoint-not-written",
        "Rank 1 went back to a checkpoint that was written in the background. The end of that save is not recorded.",
        "files",
        "tre",
        "mechanism",
        ("rank 1 has not recorded that the file of step 6 was written when it loaded it",),
        "unknown",
        recorded(_not_written),
    ),
    Defect(
        "tre-second-training-not-recorded",
        "Rank 0's training of step 7 after the rollback is not recorded.",
        "files",
        "tre",
        "resume",
        ("rank 0 has no digest of step 7, trained again",),
        "unknown",
        recorded(_no_second_digest),
    ),
)
