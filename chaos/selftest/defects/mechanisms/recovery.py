"""Defects of a recovery by end-of-life checkpoint: it acted twice, another mechanism acted, it took too long."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.checks.judge import judge
from chaos.selftest.calls import call, called_again, started_anew
from chaos.selftest.defect import Mutate, NothingToMutate, file_defect
from chaos.selftest.files import SDK_LOG, line_changed, line_doubled
from chaos.selftest.records import Records, recorded

_A_LITTLE_NS = 1_000_000
"""Excess over a budget."""


_defect = partial(file_defect, check="mechanism")


def _over_budget(phase: str, event: str, attempt: str, *, by_rank_after: int) -> Mutate:
    """Return a mutation: the end of the phase, and all later events, come so late that it is a millisecond too long."""

    def mutate(run_dir: Path) -> None:
        judgement = judge(run_dir)
        lasted = {measured.name: measured.nanoseconds for measured in judgement.recovery.phases}[phase]
        allowed = judgement.plan.response.budget.phases.get(phase)
        if lasted is None or allowed is None:
            raise NothingToMutate(f"phase {phase} has no length or no budget")
        late = int(allowed * 1e9) - lasted + _A_LITTLE_NS

        def change(records: Records) -> None:
            ends = [record for record in records.all(event, attempt=attempt) if record.get("step", 0) >= by_rank_after]
            records.delay(min(record["mono"] for record in ends), late)

        recorded(change)(run_dir)

    return mutate


def _renamed_too_early(records: Records) -> None:
    """Let rank 1, which is done, rename the directory while rank 0 is still saving."""
    saved = records.first("handler.exit", name="save_ckpt", rank=0)
    late = records.last("handler.exit", name="rename")["mono"] + _A_LITTLE_NS - saved["mono"]
    records.delay(saved["mono"], late, files="train-rank_0-")


def _a_step_earlier(records: Records) -> None:
    """Let rank 0 of the restarted job begin with the step before its first one."""
    first = records.first("step.begin", rank=0, attempt="resume")["step"]
    records.insert(records.last("load.end", rank=0, attempt="resume"), event="step.begin", step=first - 1)


DEFECTS = (
    _defect(
        "save-told-twice",
        "Rank 0 was told to save the end-of-life checkpoint twice.",
        called_again("save_ckpt", 0),
        "rank 0 was told to save 2 times",
        base="ttp",
    ),
    _defect(
        "rename-done-twice",
        "The directory was renamed twice, by the SDK's log.",
        line_doubled(SDK_LOG, "finish rename, rank:"),
        "renamed 2 times by the SDK's log",
        base="ttp",
    ),
    _defect(
        "renamed-before-all-have-saved",
        "The directory got its name while rank 0 was still writing in it.",
        recorded(_renamed_too_early),
        "rank 1 renamed before rank 0 had saved",
        base="ttp",
    ),
    _defect(
        "end-of-the-save-not-told",
        "The result of rank 0's save handler is not recorded.",
        recorded(lambda records: records.last("handler.exit", name="save_ckpt", rank=0).pop("ok")),
        "how handler save_ckpt ended on rank 0 is not recorded",
        base="ttp",
        verdict="unknown",
    ),
    _defect(
        "success-reported-as-failure",
        "The SDK reports to the cluster's agent that the repair has failed.",
        line_changed(SDK_LOG, r"do action report_result, arg=\(0, ", "do action report_result, arg=(1, "),
        "the SDK reports that retry failed",
        base="uce",
    ),
    _defect(
        "rank-restarted-beside-save",
        "Rank 3 was started again within the launch that saved and ended.",
        started_anew(3),
        "no rank is started again within a launch",
        "rank 3 was started again in attempt train",
        base="ttp",
    ),
    _defect(
        "mechanism-acts-after-resume",
        "After the resume the SDK rolls rank 0 back.",
        recorded(lambda records: call(records, records.last("step.end", rank=0, attempt="resume"), "rollback")),
        "no mechanism acts after the resume",
        "online repair acted: handler rollback on rank 0",
        base="ttp",
    ),
    _defect(
        "online-repair-beside-save",
        "The ranks were cleaned for an online repair before they saved.",
        line_changed(SDK_LOG, "STATE_OP_DUMP", "STATE_OP_REPAIR"),
        "no mechanism but TTP acts",
        "online repair acted: the SDK's log: state",
        base="ttp",
    ),
    _defect(
        "first-step-over-budget",
        "The first step after the resume ends a millisecond later than its budget allows.",
        _over_budget("first step", "step.end", "resume", by_rank_after=7),
        "first step ≤",
        base="ttp",
        check="recovery",
    ),
    _defect(
        "first-step-of-a-restart-over-budget",
        "No mechanism acts, and the first step of the restarted job ends a millisecond later than its budget allows.",
        _over_budget("first step", "step.end", "resume", by_rank_after=7),
        "first step ≤",
        base="slices",
        check="recovery",
    ),
    _defect(
        "too-many-steps-trained-again",
        "Rank 0 of the restarted job begins with a step more than it has to train again.",
        recorded(_a_step_earlier),
        "steps trained again ≤ 1",
        base="slices",
        check="recovery",
    ),
)
