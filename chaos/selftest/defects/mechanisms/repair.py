"""Defects of online repairs (UCE, HCCE): twice, too far, from the wrong rank, or another recovery in their place."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.calls import call, called, called_again, never_called, started_anew
from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import SDK_LOG, line_changed, line_doubled
from chaos.selftest.records import Records, recorded

_defect = partial(file_defect, check="mechanism")


def _copied_too_early(records: Records) -> None:
    """Give rank 1 its parameters while rank 0 is still being cleaned."""
    late = records.first("handler.exit", name="clean", rank=0)
    last = records.last("handler.exit", name="repair")["mono"]
    records.delay(late["mono"], last - late["mono"] + 1, files="train-rank_0")


def _state_after_repair(rank: int, step: int) -> Mutate:
    """Return a mutation: rank 1 (or the new process of rank 2) holds another state of the fault-free run afterwards."""

    def mutate(run_dir: Path) -> None:
        theirs = Records(run_dir, baseline=True).digest(rank, step)["parameters"]
        victim = Records(run_dir).first("fault.injecting")["rank"]
        recorded(lambda records: records.last("initial", rank=victim).update(parameters=theirs))(run_dir)

    return mutate


def _one_step_too_far(records: Records) -> None:
    """Let all ranks go back one step more than they need: step 4 is trained a second time."""
    for begin in records.all("train.begin", initial_step=4):
        begin["initial_step"] = 3
        state = next(record for record in records.all("initial", rank=begin["rank"]) if record["mono"] > begin["mono"])
        chosen = [
            record
            for record in records.all(rank=begin["rank"], step=4)
            if record["event"] in ("step.begin", "step.end", "digest") and record["mono"] < begin["mono"]
        ]
        for record in chosen:
            state = records.insert(state, **{k: v for k, v in record.items() if k not in ("mono", "wall", "pid")})


def _launched_again(records: Records) -> None:
    """Launch the job a second time, although it was to be repaired online."""
    end = records.last("attempt.end")
    start = records.first("attempt.start")
    records.insert(end, event="attempt.start", attempt="resume", argv=start["argv"], cwd=start["cwd"])


def _saved_at_end_of_life(records: Records) -> None:
    left = records.last("handler.exit", name="clean", rank=0)
    call(records, left, "save_ckpt", step=4)


DEFECTS = (
    _defect(
        "uce-repair-acts-twice",
        "The parameters of rank 1 were copied twice for one memory error.",
        called_again("repair", 1),
        "repair was called 2 times on rank 1 in recovery 1",
        base="uce",
    ),
    _defect(
        "uce-repair-logged-twice",
        "The SDK's log tells of two repairs.",
        line_doubled(SDK_LOG, "nextState: STATE_OP_REPAIR"),
        "the SDK repairs 1 times",
        "2 repairs in its log",
        base="uce",
    ),
    _defect(
        "uce-rank-not-cleaned",
        "Rank 0 was not cleaned.",
        never_called("clean", 0),
        "clean was not called on rank 0 in recovery 1",
        base="uce",
    ),
    _defect(
        "uce-broken-rank-not-repaired",
        "Rank 1, which lost its memory, got no parameters.",
        never_called("repair", 1),
        "rank 1 lost its memory, and repair was not called on it",
        base="uce",
    ),
    _defect(
        "uce-nobody-gave-parameters",
        "No healthy rank of the replica group gave its parameters.",
        never_called("repair", 3),
        "no healthy rank of replica group [1, 3] gave its parameters",
        base="uce",
    ),
    _defect(
        "uce-copied-before-clean",
        "Parameters were copied while rank 0 was still being cleaned.",
        recorded(_copied_too_early),
        # Which of the two ranks of the group enters its repair first is not fixed.
        "before parameters are copied",
        "before rank 0 was clean",
        base="uce",
    ),
    _defect(
        "uce-copied-from-wrong-group",
        "Rank 1 got the parameters of rank 0, which is of another replica group.",
        _state_after_repair(0, 4),
        "rank 1 held another state than that of step 4",
        "is rank 0's of step 4",
        base="uce",
        check="resume",
    ),
    _defect(
        "uce-copied-stale",
        "Rank 1 got its parameters from an older step.",
        _state_after_repair(3, 3),
        "rank 1 held another state than that of step 4",
        "of step 3)",
        base="uce",
        check="resume",
    ),
    _defect(
        "uce-one-step-too-far",
        "All ranks went back one step further than necessary.",
        recorded(_one_step_too_far),
        "after recovery 1 training goes on at step 5",
        "rank 0 went on at step 4: step 4 was trained again",
        base="uce",
        check="resume",
    ),
    _defect(
        "uce-downgraded-to-arf",
        "Ranks rebuilt their groups, as ARF does, where an online repair was promised.",
        called("rebuild_group", 0, "clean"),
        "ARF acted: handler rebuild_group on rank 0",
        base="uce",
    ),
    _defect(
        "uce-downgraded-to-save",
        "An end-of-life checkpoint was saved where an online repair was promised.",
        recorded(_saved_at_end_of_life),
        "TTP acted: handler save_ckpt on rank 0",
        base="uce",
    ),
    _defect(
        "uce-downgraded-to-restart",
        "The job was launched a second time where an online repair was promised.",
        recorded(_launched_again),
        "the job was started again",
        base="uce",
    ),
    _defect(
        "uce-process-replaced",
        "Rank 0 got a new process where an online repair was promised.",
        started_anew(0),
        "rank 0 was replaced: processes",
        base="uce",
    ),
    _defect(
        "uce-strategy-not-asked-for",
        "The SDK reports the success of a strategy that was not planned.",
        line_changed(
            SDK_LOG, r"'Mindio do repair operation ok', {}, 'retry'", "'Mindio do repair operation ok', {}, 'recover'"
        ),
        "the SDK reports success of recover, where retry is planned",
        base="uce",
    ),
    _defect(
        "hcce-parameters-copied",
        "Parameters were copied after a communication error, which loses none.",
        called("repair", 1, "clean", step=5),
        "HCCE",
        "repair was called on healthy rank 1",
        base="hcce",
    ),
    _defect(
        "hcce-rank-not-stopped",
        "Rank 0 was not stopped.",
        never_called("stop", 0),
        "stop was not called on rank 0 in recovery 1",
        base="hcce",
    ),
    _defect(
        "hcce-handler-failed",
        "The handler clean failed on rank 0, and the training went on.",
        recorded(
            lambda records: records.last("handler.exit", name="clean", rank=0).update(ok=False, error="no device")
        ),
        "handler clean failed on rank 0: no device",
        base="hcce",
    ),
)
