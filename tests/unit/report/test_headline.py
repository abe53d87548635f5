"""The headline says what broke first, for all ranks at once, and its id is the same in another night."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.evidence.statement_data import LOSS, NO_DATA, STATE, StatementData, about
from chaos.report.analyze import analyze
from chaos.report.causes import causes_of, decimal, kind_of, statements_of
from chaos.report.headline import headline_of, part_of
from chaos.report.result import CheckResult, Headline, RecoveryResult, Result
from tests.kit.runs.good_run import good_run
from tests.oracle.recorded_runs import RESULTS

MOMENTS = ("adam_m.layer1.bias", "adam_v.layer1.bias")


def failed(
    name: str,
    seen: str,
    order: int | None,
    expected: str = "it holds",
    where: Sequence[str] = (),
    data: StatementData = NO_DATA,
) -> CheckResult:
    return CheckResult(name, "fail", expected, seen, tuple(where), order=order, data=data)


def result_of(*checks: CheckResult, **more: object) -> Result:
    nothing = RecoveryResult(None, {}, None)
    result = Result("s", "", 1, "fail", {}, (), checks, nothing, {}, {}, (), (), {})
    return replace(result, **more)  # type: ignore[arg-type]


def headline(checks: Iterable[CheckResult], **more: object) -> Headline:
    made = headline_of(result_of(*checks, **more))
    assert made is not None
    return made


def restored(rank: int, order: int, step: int = 12) -> list[CheckResult]:
    """State that a rank did not get back, and its losses that differ from then on."""
    seen = f"2 of 19 parameters of rank {rank} are not the file's: {', '.join(MOMENTS)}"
    losses = f"first at rank {rank}, step {step}: loss 2.5 (0x1.4p+1), baseline 2.0 (0x1.0p+1)"
    return [
        failed("resume", seen, order, data=about(rank, parameters=MOMENTS, compared=19, quantity=STATE)),
        failed("loss", losses, order + 10, data=about(rank, step=step, quantity=LOSS, expected=2.0, seen=2.5)),
    ]


def test_ranks_are_merged_and_the_step_from_which_losses_differ_is_told() -> None:
    made = headline([*restored(1, 0, 13), *restored(0, 1)])
    assert made.check == "resume"
    assert made.text == (
        "resume: the optimizer's moments were not restored on ranks 0-1 (2 of 19 parameters); "
        "losses differ from step 12 on"
    )


def test_a_run_that_changed_a_checkpoints_random_state_says_so() -> None:
    recorded = json.loads((RESULTS / "random-state-not-restored.json").read_text("utf-8"))
    assert recorded["headline"]["text"] == (
        "resume: the random state was not restored on ranks 0-1 (1 of 17 parameters); losses differ from step 5 on"
    )


def test_the_id_is_the_same_for_other_ranks_numbers_and_paths() -> None:
    one, other = headline(restored(1, 0)), headline([*restored(2, 0, 5), *restored(3, 1, 5), *restored(0, 2, 5)])
    assert one.text != other.text and one.id == other.id and one.id.startswith("resume-")
    texts = ["rank 1 read /a/b.ckpt of step 4 (0x1.8p+1)", "rank 30 read job/c.ckpt of step 1,024 (0x1.0p-3)"]
    assert len({headline([failed("resume", text, 0)]).id for text in texts}) == 1


@pytest.mark.parametrize(
    ("text", "another_night"),
    [
        (
            "the fault-free run kill-rank-20261127-053852-68ba ended",
            "the fault-free run kill-rank-20261128-054000-ab1f ended",
        ),
        ("the digest is a1b2c3d4e5f60718", "the digest is 9f00d1c2deadbeef"),
        ("pod 0a1b2c3d-0000-4000-8000-00000000000a is gone", "pod deadbeef-ffff-4aaa-8bbb-00000000000b is gone"),
    ],
)
def test_the_id_is_the_same_for_other_runs_digests_and_pods(text: str, another_night: str) -> None:
    assert headline([failed("resume", text, 0)]).id == headline([failed("resume", another_night, 0)]).id


def test_words_are_no_digests() -> None:
    assert kind_of("effaced deadbeef defaced") == "effaced deadbeef defaced"


def test_another_kind_of_failure_has_another_id() -> None:
    random = about(1, parameters=("random_state",), compared=19, quantity=STATE)
    seen = "1 of 19 parameters of rank 1 are not the file's: random_state"
    ids = {
        headline(restored(1, 0)).id,
        headline([failed("resume", seen, 0, data=random)]).id,
        headline([failed("resume", "rank 1 stopped after step 3", 0)]).id,
        headline([failed("run", "rank 1 stopped after step 3", 0)]).id,
    }
    assert len(ids) == 4


def test_the_id_of_the_recorded_failures_is_one_for_each_kind() -> None:
    known: dict[str, set[str]] = {}
    for path in RESULTS.iterdir():
        if (made := json.loads(path.read_text("utf-8"))["headline"]) is not None:
            known.setdefault(made["id"], set()).add(kind_of(made["text"].partition(" (expected")[0]))
    assert len(known) > 20
    assert [texts for texts in known.values() if len(texts) > 1] == []


def test_a_pass_has_no_headline(tmp_path: Path) -> None:
    assert analyze(good_run().write(tmp_path)).headline is None


def test_an_interrupted_run_has_its_fate_as_headline() -> None:
    checks = [replace(failed("run", "no end", 0), verdict="unknown")]
    texts = ["interrupted; job ended; nothing left", "interrupted; no job was started; nothing left"]
    one, other = (headline(checks, verdict="unknown", reason=text) for text in texts)
    assert (one.text, one.id) == (texts[0], other.id)


def test_a_time_over_its_budget_is_told_with_both() -> None:
    made = headline([failed("recovery", "40.017 s", 0, "first step ≤ 15 s")])
    assert made.text == "recovery: first step took 40.017 s, at most 15 s are allowed"


def test_a_result_without_a_statement_has_a_headline() -> None:
    assert headline([], verdict="unknown").text == "nothing was checked"


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        (MOMENTS, "the optimizer's moments"),
        (("layer1.weight", "layer2.bias"), "the weights"),
        (("global_step",), "global_step"),
        (("adam_m.a", "beta1_power"), "the optimizer's state"),
        (("adam_m.a", "a"), "weights and optimizer state"),
        (("random_state",), "the random state"),
        (("random_state", "a"), "the state"),
    ],
)
def test_parameters_are_called_by_what_they_are(parameters: tuple[str, ...], part: str) -> None:
    assert part_of(parameters)[0] == part


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("loss 2.5 (0x1.4000000000000p+1), baseline nan (nan)", "loss 2.5, baseline nan"),
        ("the norm is 0x1.8p+1 here", "the norm is 3.0 here"),
        ("at address 0x7f00", "at address 0x7f00"),
        ("0x1.8p+9999", "0x1.8p+9999"),
    ],
)
def test_hex_floats_are_shown_as_decimals(text: str, shown: str) -> None:
    assert decimal(text) == shown


@pytest.mark.parametrize(
    ("says", "shown"),
    [
        (lambda rank: f"rank {rank} was told to exit", "each of ranks 0-2 was told to exit"),
        (lambda rank: f"no digests of rank {rank} after recovery 1", "no digests of ranks 0-2 after recovery 1"),
        (lambda rank: f"rank {rank} loaded rank 7's file", "rank 0 loaded rank 7's file (and 2 alike)"),
        (lambda rank: f"rank {rank} has loss {rank}.5", "rank 0 has loss 0.5 (and 2 alike)"),
    ],
)
def test_statements_of_several_ranks_are_one(says: Callable[[int], str], shown: str) -> None:
    checks = [failed("resume", says(rank), rank, where=[f"history/rank_{rank}.jsonl:3"]) for rank in range(3)]
    (statement,) = statements_of(checks)
    assert (statement.seen, statement.count) == (shown, 3)
    assert statement.where == tuple(f"history/rank_{rank}.jsonl:3" for rank in range(3))


def test_the_ranks_of_a_statement_about_many_are_read_from_it() -> None:
    seen = "rank 0 stopped after step 3; the same of ranks 1-127 (127 in all); the places of ranks 0-4 are listed"
    (statement,) = statements_of([failed("resume", seen, 0)])
    assert statement.seen == "each of ranks 0-127 stopped after step 3"
    (large,) = statements_of([failed("resume", "rank 0 stopped; the same of ranks 1-999999999", 0)])
    assert len(large.ranks) < 100_000


def test_what_follows_from_nothing_is_a_cause_too() -> None:
    checks = [
        failed("hygiene", "rank 1 ended by SIGKILL", 1),
        failed("resume", "rank 1 stopped after step 3", 0),
        failed("hygiene", "processes left: 4711", 2),
        failed("loss", "no loss of rank 1", None),
    ]
    causes = causes_of(statements_of(checks))
    assert [cause.seen for cause in causes] == ["rank 1 stopped after step 3", "processes left: 4711"]
