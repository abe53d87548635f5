"""Good recoveries of other shapes pass too: nobody is blamed for what the plan or the vendor allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.checks.checkpoint import check as checkpoint
from chaos.checks.recovery.phases import measure
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import worst
from chaos.history.reader import read_history
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import (
    SAVED,
    GoodRun,
    Mutate,
    Record,
    Saved,
    loss_after,
    pid_of,
    record,
    state_after,
    written,
)
from tests.unit.checks.harmless import nothing_happens
from tests.unit.checks.judging import Judge
from tests.unit.checks.limits import nothing_can_be_saved


def another_entitled_rank_saved(run: GoodRun) -> None:
    """Rank 3 saves for its group in place of rank 1."""
    saved = run.saved.pop(1)
    path = saved.path.replace("rank_1", "rank_3")
    run.saved[3] = Saved(path, state_after(3, SAVED), {**saved.appended, "cur_rank": 3})
    for event in ("checkpoint.begin", "checkpoint.end", "handler.enter", "handler.exit"):
        moved = [entry for entry in run.events(event, rank=1) if entry.get("name") != "exit"]
        for one in moved:
            run.files["train-rank_1-1001.jsonl"].remove(one)
            changed = {**one, "rank": 3, "pid": pid_of("train", 3)}
            run.add("train-rank_3", changed)
    for one in [*run.events("load.begin"), *run.events("load.end")]:
        one["path"] = one["path"].replace("rank_1", "rank_3")


def older_directory_name(run: GoodRun) -> None:
    """MindSpore before 2.7 writes tft_saved_checkpoints."""
    assert run.plan.checkpoint is not None
    for saved in run.saved.values():
        saved.path = saved.path.replace("ttp_saved", "tft_saved")
    for event in [*run.events("load.begin"), *run.events("load.end")]:
        event["path"] = event["path"].replace("ttp_saved", "tft_saved")
    run.replan(checkpoint=replace(run.plan.checkpoint, files={}, directory=None))


def every_step_an_epoch(run: GoodRun) -> None:
    """``5_1`` is step 5 at sink size 1."""
    assert run.plan.checkpoint is not None
    for saved in run.saved.values():
        saved.path = saved.path.replace("-1_5", "-5_1")
        saved.appended.update(epoch_num=SAVED, batch_num=1)
    for event in [*run.events("load.begin"), *run.events("load.end")]:
        event["path"] = event["path"].replace("-1_5", "-5_1")
    run.replan(checkpoint=replace(run.plan.checkpoint, files={}), steps_per_epoch=1)


def open_step(run: GoodRun) -> None:
    """The trigger leaves the step open; the saved one decides."""
    assert run.plan.checkpoint is not None
    (fault,) = run.plan.faults
    run.replan(
        faults=(replace(fault, trigger={"elapsed": 0.4}),),
        checkpoint=replace(run.plan.checkpoint, step=None, files={}, directory=None),
        resume_step=None,
    )
    run.drop("barrier.reached")
    run.only("fault.landed").update(step=None, phase=None)
    run.only("fault.landed")["evidence"][0]["barrier"] = None


def torn_line_of_the_killed_rank(run: GoodRun) -> None:
    name = "train-rank_2-1002.jsonl"
    run.raw[name] = written(run.files.pop(name)) + b'{"seq":19,"mono":5010'


def without_a_resume(run: GoodRun) -> None:
    run.without_resume()
    run.replan(budget=replace(run.plan.response.budget, phases={"detection": 1.0}))


def without_a_baseline(run: GoodRun) -> None:
    run.baseline = None
    run.replan(baseline="none")


def within_the_tolerance(run: GoodRun) -> None:
    run.replan(loss_tolerance=1e-3)
    for event in run.events("digest", attempt="resume", rank=1):
        event["loss"] = (loss_after(1, event["step"]) * (1 + 1e-5)).hex()


def thinned_out(run: GoodRun) -> None:
    """Digests at every fifth step only, the last one included."""
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for name, records in files.items():
            files[name] = [event for event in records if event["event"] != "digest" or event["step"] in (5, 10, 12)]


def loss_on_the_last_stage_only(run: GoodRun) -> None:
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] == "digest" and event["rank"] in (0, 2):
                event["loss"] = None


def running_statistics(run: GoodRun) -> None:
    """Each rank's own data moves them, so replicas differ in them."""
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for event in (entry for records in files.values() for entry in records):
            if event["event"] in ("initial", "digest") and event.get("step", 0) == SAVED + 2:
                event["parameters"]["bn.moving_mean"] = f"{event['rank']:032x}"


def consistency_flag(run: GoodRun) -> None:
    for saved in run.saved.values():
        saved.state["tft_g_one_flag"] = np.array([1], np.int32)


def the_teardown_had_to_kill(run: GoodRun) -> None:
    run.add("harness", record(25.5, "deadline.expired", name="stop", seconds=15, detail="rank 0 ignores SIGTERM"))


def caught_up_later(run: GoodRun) -> None:
    """A survivor had begun one more step: two steps are trained again."""
    place: Record = {"attempt": "train", "rank": 0, "pid": pid_of("train", 0)}
    run.drop("step.begin", attempt="train", rank=0, step=SAVED + 1)
    run.add("train-rank_0", record(10.5, "step.begin", step=SAVED + 1, **place))


def also_periodic_checkpoints(run: GoodRun) -> None:
    run.saved[7] = Saved("job/checkpoints/rank_0/net-1_4.ckpt", state_after(0, 4), {})


def loaded_by_the_whole_path(run: GoodRun) -> None:
    for event in (*run.events("load.begin"), *run.events("load.end")):
        event["path"] = f"/where/job/is/reports/r1/job/{event['path']}"


def suspended(run: GoodRun) -> None:
    """The rank is stopped, not killed; the others save, and the teardown ends it."""
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, kind="suspend"),))
    run.only("fault.injecting").update(signal=19, kind="suspend")
    run.only("fault.landed").update(kind="suspend")
    run.only("fault.landed")["evidence"][0]["signal"] = 19
    run.drop("rank.exit", attempt="train", rank=2)
    late = record(11.99, "rank.exit", "train", 2, pid_of("train", 2), signal=9, code=None)
    run.add("harness", late)


def launcher_lingers(run: GoodRun) -> None:
    orphans = [{"pid": 901, "cmdline": ["python", "train.py"]}]
    run.add("harness", record(11.95, "job.leftovers", "train", orphans=orphans))


def retrigger(run: GoodRun, trigger: dict[str, Any]) -> None:
    (fault,) = run.plan.faults
    run.replan(faults=(replace(fault, trigger=trigger),))


def log_line_seen(run: GoodRun) -> None:
    retrigger(run, {"step": SAVED, "phase": "step.end", "log": {"contains": "lr: 0.1", "rank": 0}})
    run.others["logs/train/worker_0.log"] = b"x" * (1 << 20) + b"epoch 1, lr: 0.1\n"


def one_of_two_conditions(run: GoodRun) -> None:
    """The time came first: nobody was held at a barrier."""
    retrigger(run, {"any": [{"step": 9, "phase": "forward"}, {"elapsed": 0.4}]})
    run.drop("barrier.reached")
    run.only("fault.landed").update(step=None, phase=None)
    run.only("fault.landed")["evidence"][0]["barrier"] = None


def nested_conditions(run: GoodRun) -> None:
    retrigger(run, {"all": [{"step": SAVED, "phase": "step.end"}, {"elapsed": 0.1}]})


def two_faults(run: GoodRun) -> None:
    """Rank 3 is killed after rank 2 was."""
    assert run.plan.checkpoint is not None
    second = PlannedFault("kill-2", "kill", (3,), {"after": "kill-1"}, {}, None, 18)
    run.replan(
        faults=(*run.plan.faults, second),
        checkpoint=replace(run.plan.checkpoint, entitled={0: (0,), 1: (1,)}),
    )
    for event in ("rank.exit", "handler.enter"):
        run.drop(event, attempt="train", rank=3)
    pid = pid_of("train", 3)
    evidence = [{"rank": 3, "pid": pid, "signal": 9, "barrier": None}]
    place: Record = {"attempt": "train", "rank": 3, "pid": pid}
    facts: Record = {"fault": "kill-2", "kind": "kill"}
    run.add("harness", record(10.6, "fault.injecting", **facts, signal=9, target_rank=3, start_time=103, **place))
    run.add("harness", record(10.62, "rank.exit", signal=9, code=None, **place))
    run.add("harness", record(10.64, "fault.landed", **facts, ranks=[3], step=None, phase=None, evidence=evidence))
    run.add("harness", record(12.1, "fault.healed", fault="kill-2", how="the process is gone"))


GOOD: list[Mutate] = [
    log_line_seen,
    one_of_two_conditions,
    nested_conditions,
    two_faults,
    suspended,
    launcher_lingers,
    another_entitled_rank_saved,
    older_directory_name,
    every_step_an_epoch,
    open_step,
    torn_line_of_the_killed_rank,
    without_a_resume,
    without_a_baseline,
    within_the_tolerance,
    thinned_out,
    loss_on_the_last_stage_only,
    running_statistics,
    consistency_flag,
    the_teardown_had_to_kill,
    caught_up_later,
    also_periodic_checkpoints,
    loaded_by_the_whole_path,
]


@pytest.mark.parametrize("shape", GOOD, ids=lambda shape: str(shape.__name__))
def test_good_recovery_passes(run: GoodRun, judged: Judge, shape: Mutate) -> None:
    shape(run)
    judgement = judged(run)
    assert [finding for finding in judgement.findings if finding.verdict != "pass"] == []
    assert judgement.verdict == "pass"


@pytest.mark.parametrize("shape", [nothing_can_be_saved, nothing_happens], ids=lambda shape: str(shape.__name__))
def test_run_without_a_recovery_passes_and_says_that_none_was_measured(
    run: GoodRun, judged: Judge, shape: Mutate
) -> None:
    shape(run)
    judgement = judged(run)
    assert [finding for finding in judgement.findings if finding.verdict != "pass"] == []
    assert "recovery" in {exclusion.check for exclusion in judgement.not_checked}


def test_without_a_baseline_what_was_not_compared_is_listed(run: GoodRun, judged: Judge) -> None:
    without_a_baseline(run)
    left = [(exclusion.check, exclusion.reason) for exclusion in judged(run).not_checked]
    assert left[:3] == [("checkpoint", "baseline: none"), ("resume", "baseline: none"), ("loss", "baseline: none")]
    # What is left out of every recovery; and its agents are those of an earlier version.
    assert [check for check, _ in left[3:]] == ["hygiene", "mechanism"]


def test_without_a_baseline_a_spoilt_value_is_still_caught_by_the_ranks_own_digests(
    run: GoodRun, judged: Judge
) -> None:
    without_a_baseline(run)
    run.saved[0].state["layer1.bias"] = run.saved[0].state["layer1.bias"] * 2
    assert judged(run).verdict == "fail"


def test_phases_add_up_to_the_total_exactly(run: GoodRun, judged: Judge) -> None:
    recovery = judged(run).recovery
    lengths = [phase.nanoseconds for phase in recovery.phases]
    assert None not in lengths
    assert sum(length for length in lengths if length is not None) == recovery.total == 11_830_000_000


@pytest.mark.parametrize("zone_hours", [-12, -3.5, 0, 5.75, 14])
def test_the_time_zone_of_the_log_does_not_matter(run: GoodRun, tmp_path: Path, zone_hours: float) -> None:
    run.log_zone_s = int(zone_hours * 3600)
    directory = run.write(tmp_path)
    history = read_history(directory / "history")
    recovery = measure(run.plan, history, Artifacts(directory, None))
    assert recovery.phases[0].name == "detection"
    assert recovery.phases[0].nanoseconds == 600_000_000


@pytest.mark.parametrize("zone_hours", [-3.5, 0, 8])
@pytest.mark.parametrize("minutes", [8, 14, 20, 29])
def test_a_process_may_take_long_until_it_logs(run: GoodRun, judged: Judge, zone_hours: float, minutes: int) -> None:
    """What a job imports and loads takes minutes on a slow machine, before the SDK has anything to say."""
    run.log_zone_s = int(zone_hours * 3600)
    for event in ("run.start", "attempt.start", "agent.start", "writer.start"):
        for entry in run.events(event):
            if entry["attempt"] != "resume":
                entry.update({key: entry[key] - minutes * 60_000_000_000 for key in ("mono", "wall")})
    assert judged(run).recovery.phases[0].nanoseconds == 600_000_000


@pytest.mark.parametrize("hours", [0.5, 1])
def test_a_zone_that_changes_in_a_launch_is_nobodys_delay(run: GoodRun, judged: Judge, hours: float) -> None:
    """Summer time begins between the fault and the controller's first word about it."""
    run.log = [(at + hours * 3600 if at >= 11 else at, text) for at, text in run.log]
    judgement = judged(run)
    assert judgement.verdict == "unknown"
    assert "its log's zone has changed" in judgement.recovery.phases[0].reason
    assert not [finding for finding in judgement.findings if finding.verdict == "fail"]


def test_lines_of_several_threads_may_change_places(run: GoodRun, judged: Judge) -> None:
    """A thread that has looked at the clock may have to wait until it can write."""
    run.log.insert(2, (run.log[1][0] - 0.8, "nextState: STATE_OP_NORMAL"))
    assert judged(run).recovery.phases[0].nanoseconds == 600_000_000


def test_every_flipped_bit_of_a_checkpoint_is_noticed(run: GoodRun, tmp_path: Path) -> None:
    directory = run.write(tmp_path)
    history = read_history(directory / "history")
    baseline = read_history(directory / "baseline" / "history")
    path = directory / run.saved[0].path
    good = path.read_bytes()
    missed = []
    for place in range(len(good)):
        spoilt = bytearray(good)
        spoilt[place] ^= 1 << place % 8
        path.write_bytes(bytes(spoilt))
        findings = checkpoint.check(run.plan, history, Artifacts(directory, baseline))
        if worst([finding.verdict for finding in findings]) == "pass":
            missed.append(place)
    assert missed == []
