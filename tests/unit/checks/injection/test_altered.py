"""A value that was changed without a word: proven by the rank's record, and by a step that comes to something else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.checks.judge import Judgement
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.injection.triggers import demands
from chaos.faults.values.proof import altered_again, altered_doubts, other_batches
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.job_effect import SILENT
from chaos.plan.model import Plan
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault import PlannedFault
from tests.kit.runs.good_run import GoodRun, Record, pid_of, record
from tests.unit.checks.judging import Judge, said

PLACES = {"gradient": "allreduce.enter", "weight": "step.begin", "activation": "forward"}


def planned(where: str = "gradient", kind: str = "flip-bit", **parameters: Any) -> PlannedFault:
    phase = PLACES.get(where, "forward")
    given = {"where": where, **parameters} if kind == "flip-bit" else parameters
    return PlannedFault("it", kind, (2,), {"step": 5, "phase": phase}, given, None, 9, SILENT)


def event(name: str, mono: int, **data: Any) -> Event:
    return Event(name, mono, mono, "agent", mono, "train", 2, 77, data, f"rank_2.jsonl:{mono}")


def digest(step: int, mono: int, state: str, batch: str = "", loss: float = 0.5) -> Event:
    parameters = {"layer1.weight": state}
    return event("digest", mono, step=step, parameters=parameters, batch=batch or f"b{step}", loss=loss.hex())


INJECTING = event("fault.injecting", 10, fault="it")
LANDING = event("fault.landed", 12, fault="it")
FACTS = {"bit": 27, "element": 4, "dtype": "float32", "before": (0.5).hex(), "after": (8.0).hex()}


def altered(where: str = "gradient", **data: Any) -> Event:
    more = {"parameter": "layer1.weight", "digest_before": "s4", "digest_after": "x"} if where == "weight" else {}
    place = {"step": 5, "phase": PLACES.get(where, "forward")}
    return event("fault.altered", 11, **{"fault": "it", "what": where, **place, **FACTS, **more, **data})


def doubts(fault: PlannedFault, *events: Event, baseline: tuple[Event, ...] | None = None) -> list[str]:
    baseline = (digest(4, 4, "s4"), digest(5, 5, "s5")) if baseline is None else baseline
    artifacts = cast(Artifacts, SimpleNamespace(baseline=History(baseline, ())))
    before = digest(4, 9, "s4")
    history = History((before, *events), ())
    return [text for text, _ in altered_doubts(history, artifacts, fault, demands(fault.trigger), LANDING, INJECTING)]


AFTER = digest(5, 20, "other")


@pytest.mark.parametrize("where", PLACES)
def test_the_record_and_another_state_prove_it(where: str) -> None:
    assert doubts(planned(where), altered(where), AFTER) == []


@pytest.mark.parametrize(
    ("own", "doubt"),
    [
        ({"what": "weight"}, "changed weight, not gradient"),
        ({"step": 6}, "the planned fault was not injected"),
        ({"before": None}, "has not recorded which bit"),
        ({"bit": None}, "has not recorded which bit"),
        ({"after": FACTS["before"]}, "before and after"),
    ],
)
def test_a_record_that_does_not_fit_is_a_doubt(own: dict[str, Any], doubt: str) -> None:
    assert any(doubt in text for text in doubts(planned(), altered(**own), AFTER))


def test_without_a_record_nothing_is_known() -> None:
    assert doubts(planned(), AFTER) == ["rank 2's own history does not say that it changed anything"]
    assert doubts(planned(), replace(altered(), pid=78), AFTER)
    assert any("before it was told to" in text for text in doubts(planned(), replace(altered(), mono=9), AFTER))
    late = replace(altered(), mono=13)
    assert any("landing is recorded before" in text for text in doubts(planned(), late, AFTER))


def test_a_change_that_is_not_felt_shows_nothing() -> None:
    same = digest(5, 20, "s5")
    assert any("changed nothing that counts" in text for text in doubts(planned(), altered(), same))
    assert any("nothing to compare" in text for text in doubts(planned(), altered()))
    assert any("nothing to compare" in text for text in doubts(planned(), altered(), AFTER, baseline=()))


def test_what_was_felt_is_told_by_the_training_that_was_changed() -> None:
    """The step may be trained again, without the change, by a new process or the same one."""
    for again in (replace(digest(5, 30, "s5"), pid=78), digest(5, 30, "s5")):
        assert doubts(planned(), altered(), AFTER, again) == []
    first = digest(5, 5, "other")
    assert any("nothing to compare" in text for text in doubts(planned(), altered(), first))


def test_a_state_that_was_another_already_does_not_show_a_flipped_bit() -> None:
    earlier = replace(digest(4, 8, "wrong"), seq=10)
    baseline = (digest(4, 4, "s4"), digest(5, 5, "s5"))
    for fault, doubted in ((planned(), True), (planned("activation"), True), (planned("batch", "wrong-batch"), False)):
        artifacts = cast(Artifacts, SimpleNamespace(baseline=History(baseline, ())))
        changed = digest(5, 20, "other", "b4")
        history = History((earlier, altered("batch" if fault.kind == "wrong-batch" else "gradient"), changed), ())
        found = [
            text for text, _ in altered_doubts(history, artifacts, fault, demands(fault.trigger), LANDING, INJECTING)
        ]
        assert any("was already another than the fault-free run's" in text for text in found) is doubted


def test_the_bit_of_the_scenario_is_the_one_that_counts() -> None:
    assert doubts(planned(bit=27, element=4), altered(), AFTER) == []
    assert doubts(planned(bit=26), altered(), AFTER) == ["rank 2 hit bit 27, not 26"]
    assert doubts(planned("weight", parameter="other"), altered("weight"), AFTER)


def test_a_weight_was_before_what_the_rank_had_recorded() -> None:
    wrong = altered("weight", digest_before="s3")
    assert any("is not its layer1.weight after step 4" in text for text in doubts(planned("weight"), wrong, AFTER))
    same = altered("weight", digest_after="s4")
    assert any("same digest before and after" in text for text in doubts(planned("weight"), same, AFTER))


def test_another_batch_is_that_of_the_step_before_and_not_its_own() -> None:
    batch = planned("batch", "wrong-batch")
    assert doubts(batch, altered("batch"), digest(5, 20, "other", "b4")) == []
    own = doubts(batch, altered("batch"), digest(5, 20, "other", "b5"))
    assert own[0] == "rank 2 has not trained the batch of step 4 in step 5"
    assert own[1] == "rank 2 trained its own batch in step 5"


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_loss_is_as_it_was_asked_for(value: str) -> None:
    fault = planned("loss", "nonfinite-loss", value=value)
    assert doubts(fault, altered("loss"), digest(5, 20, "other", loss=float(value))) == []
    other = {"nan": float("inf"), "inf": float("nan")}[value]
    for loss in (0.5, other):
        assert any("loss of step 5" in text for text in doubts(fault, altered("loss"), digest(5, 20, "x", loss=loss)))


def test_a_second_change_is_one_too_many() -> None:
    once = History((altered(),), ())
    twice = History((altered(), replace(altered(), mono=12)), ())
    assert (len(altered_again(once, planned())), len(altered_again(twice, planned()))) == (0, 2)


# What is still judged behind it, and what is not.


def corrupted(run: GoodRun, fault: PlannedFault, comparable: Comparable) -> GoodRun:
    run.replan(faults=(fault, *run.plan.faults), comparable=comparable)
    place: Record = {"attempt": "train", "rank": 2, "pid": pid_of("train", 2)}
    run.add(
        "harness", record(10.0, "fault.injecting", fault="it", kind=fault.kind, **place)
    )  # no difference is earlier
    return run


def blamed(judgement: Judgement, check: str, text: str) -> bool:
    """Whether the check says that it is not so. It can blame nobody here: the corruption itself is not in this run."""
    return bool(said(judgement, check, "unknown", text))


def spoil_loss(run: GoodRun, rank: int, step: int, value: float) -> None:
    for attempt in ("train", "resume"):
        for entry in run.events("digest", attempt=attempt, rank=rank, step=step):
            entry["loss"] = value.hex()


@pytest.mark.parametrize(("step", "blames"), [(3, True), (8, False)])
def test_losses_must_be_finite_up_to_the_corruption_and_not_behind_it(
    run: GoodRun, judged: Judge, step: int, blames: bool
) -> None:
    corrupted(run, planned(), Comparable(4, 5, "a bit was flipped", 5, 4))
    spoil_loss(run, 0, step, float("nan"))
    assert blamed(judged(run), "loss", "every loss that is recorded is finite") is blames


def spoil_norm(run: GoodRun, rank: int, step: int) -> None:
    for entry in run.events("digest", rank=rank, step=step):
        entry["gradients"] = {**entry["gradients"], "norm": float("inf").hex()}


@pytest.mark.parametrize(("step", "blames"), [(8, True), (9, False)])
def test_the_reduced_gradients_may_be_no_number_in_the_step_that_is_changed(
    run: GoodRun, judged: Judge, step: int, blames: bool
) -> None:
    flip = replace(planned(), trigger={"step": 9, "phase": "allreduce.enter"})
    corrupted(run, flip, Comparable(8, 9, "a bit was flipped", 9, 8))
    spoil_norm(run, 0, step)
    assert blamed(judged(run), "loss", "gradients are finite and not zero") is blames


def test_a_step_that_is_trained_again_must_be_finite_and_the_first_training_not(run: GoodRun, judged: Judge) -> None:
    fault = replace(planned(), trigger={"step": 6, "phase": "allreduce.enter"})
    run.replan(faults=(replace(fault, taken_back=True), *run.plan.faults))
    (held,) = run.events("digest", attempt="train", rank=0, step=5)
    run.add("train-rank_0", {**held, "mono": held["mono"] + 1, "step": 6, "loss": float("nan").hex()})
    assert not blamed(judged(run), "loss", "every loss that is recorded is finite")
    for entry in run.events("digest", attempt="resume", rank=0, step=6):
        entry["loss"] = float("nan").hex()
    assert blamed(judged(run), "loss", "every loss that is recorded is finite")


def test_a_batch_that_is_trained_again_is_no_planned_other_one() -> None:
    batch = planned("batch", "wrong-batch")
    of = cast(Plan, SimpleNamespace(faults=(batch,)))
    assert other_batches(of) == {(2, 5)}
    assert other_batches(cast(Plan, SimpleNamespace(faults=(replace(batch, taken_back=True),)))) == set()


def test_without_a_limit_every_loss_must_be_finite(run: GoodRun, judged: Judge) -> None:
    corrupted(run, planned("batch", "wrong-batch"), Comparable(4, 4, "another batch"))
    spoil_loss(run, 0, 8, float("inf"))
    assert blamed(judged(run), "loss", "every loss that is recorded is finite")


def other_state(run: GoodRun, rank: int, step: int) -> None:
    for entry in run.events("digest", rank=rank, step=step):
        entry["parameters"] = {**entry["parameters"], "layer1.weight": "0" * 32}


@pytest.mark.parametrize(
    ("where", "rank", "step", "fails"),
    [("weight", 2, 8, False), ("weight", 2, 3, True), ("weight", 3, 8, True), ("gradient", 2, 8, True)],
)
def test_only_the_rank_with_the_changed_weight_need_not_agree(
    run: GoodRun, judged: Judge, where: str, rank: int, step: int, fails: bool
) -> None:
    corrupted(run, planned(where), Comparable(4, 4, "a bit was flipped", 4, 4))
    other_state(run, rank, step)
    assert blamed(judged(run), "consistency", "hold the same weights") is fails


def test_what_is_not_judged_is_said(run: GoodRun, judged: Judge) -> None:
    corrupted(run, planned("weight"), Comparable(4, 4, "a bit was flipped", 4, 4))
    left = {(exclusion.check, exclusion.what) for exclusion in judged(run).not_checked}
    assert ("consistency", "rank 2 against the rest of its replica group from step 5") in left
    assert ("loss", "that losses after step 4 are finite") in left


def other_batch(run: GoodRun, rank: int, step: int) -> None:
    for entry in run.events("digest", rank=rank, step=step):
        entry["batch"] = "f" * 32


@pytest.mark.parametrize(("rank", "step", "fails"), [(2, 5, False), (2, 4, True), (1, 5, True)])
def test_only_the_planned_batch_may_be_another(run: GoodRun, judged: Judge, rank: int, step: int, fails: bool) -> None:
    corrupted(run, planned("batch", "wrong-batch"), Comparable(4, 4, "another batch"))
    other_batch(run, rank, step)
    assert blamed(judged(run), "resume", "every step trains the batch") is fails
