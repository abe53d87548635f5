"""What a judgement of a spoilt run comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.evidence.finding import Finding
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import Defect, Row, outcome_of

FOUND = Finding("loss", "fail", "every loss is the fault-free run's", "first at rank 1, step 8", ("history/a:3",))
OTHER = Finding("hygiene", "fail", "no process is left", "processes left: 77", ())


def nothing(_: Path) -> None:
    """Spoils nothing; the judgement is given."""


DEFECT = Defect(
    "loss-drift", "The loss drifts.", "files", "kill-rank", "loss", ("rank 1", "history/a:3"), mutate=nothing
)


def test_the_right_finding_of_the_right_check_catches_it() -> None:
    assert outcome_of(DEFECT, [OTHER, FOUND], "fail")[0] == "caught"


@pytest.mark.parametrize(
    "finding",
    [
        OTHER,
        Finding("loss", "unknown", FOUND.expected, FOUND.seen, FOUND.where),
        Finding("resume", "fail", FOUND.expected, FOUND.seen, FOUND.where),
        Finding("loss", "fail", FOUND.expected, "first at rank 0, step 8", FOUND.where),
    ],
)
def test_another_check_verdict_or_text_is_the_wrong_reason(finding: Finding) -> None:
    outcome, seen = outcome_of(DEFECT, [finding], finding.verdict)
    assert outcome == "wrong reason"
    assert finding.seen in seen and finding.check in seen


def test_a_pass_is_missed_even_if_the_finding_is_there() -> None:
    assert outcome_of(DEFECT, [FOUND], "pass")[0] == "missed"


def test_a_row_as_json() -> None:
    plain = Row(DEFECT, "caught", 0.12345, "it was seen").to_json()
    assert plain["name"] == "loss-drift"
    assert (plain["outcome"], plain["seconds"], plain["reason"]) == ("caught", 0.123, ["rank 1", "history/a:3"])


@pytest.mark.parametrize("reason", [(), ("",)])
def test_a_defect_needs_a_reason(reason: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="without a reason"):
        Defect("a", "b", "files", "kill-rank", "loss", reason, mutate=nothing)


def test_a_defect_of_files_has_spoil_and_another_has_inside() -> None:
    with pytest.raises(ValueError, match="has inside"):
        Defect("a", "b", "SDK", "kill-rank", "loss", ("c",), mutate=nothing)
    with pytest.raises(ValueError, match="has mutate"):
        Defect("a", "b", "files", "kill-rank", "loss", ("c",), inside="package.module:function")


def test_the_catalogue_has_no_name_twice() -> None:
    names = [defect.name for defect in catalogue()]
    assert len(names) == len(set(names))
