"""A sentence that is quoted in some other line of a log is no sign: records count as their program prints them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.runs.good_run import RANKS, GoodRun, good_run
from tests.kit.runs.repaired_run import uce_run
from tests.kit.runs.replaced_run import replaced_run
from tests.kit.runs.rolled_back_run import rolled_back_run
from tests.unit.checks.judging import Judge, not_passed, said

ME = "[WARNING] ME(26612:140535643880320,MainProcess):2026-11-21-01:28:56.320.000 [mindspore/train/model.py:320] "
RESUMED = "Resume training after TREError from step 6."
THROWN = "Current global norm [7.5] is greater equal than threshold 5.0, stop training..."
QUOTES = (
    f"help: a rollback is told by '{RESUMED}' in the log",
    f'    logger.warning(f"{RESUMED}")',
    f"  {RESUMED}",
    f"{ME}a user asked what '{RESUMED}' means",
    f"{RESUMED} That is what MindSpore says.",
    f"{ME}{RESUMED} was seen in another job",
    f"2026-11-21 01:28:56,320 - mine[mine.py:9] - INFO - the words '{THROWN}' are looked for",
    f"# {THROWN}",
)
RUNS: dict[str, Callable[[], GoodRun]] = {
    "TTP": good_run,
    "UCE": uce_run,
    "ARF": replaced_run,
    "TRE": rolled_back_run,
}


def with_line(run: GoodRun, line: str, ranks: range = range(RANKS)) -> GoodRun:
    """The line at the end of the log of each of these ranks."""
    for rank in ranks:
        name = f"logs/train/worker_{rank}.log"
        run.others[name] = run.others.get(name, b"epoch: 1 step: 1, loss is 2.3\n") + f"{line}\n".encode()
    return run


@pytest.mark.parametrize("line", QUOTES)
@pytest.mark.parametrize("mechanism", RUNS)
def test_a_good_run_whose_logs_quote_the_words_of_a_rollback_passes(judged: Judge, mechanism: str, line: str) -> None:
    judgement = judged(with_line(RUNS[mechanism](), line))
    assert [one for one in not_passed(judgement) if one[1] == "mechanism"] == []
    assert said(judgement, "mechanism", "pass", mechanism)


@pytest.mark.parametrize("line", [f"{ME}{RESUMED}", RESUMED, f"2026-11-21 01:28:56,320 - m[m.py:9] - INFO - {THROWN}"])
@pytest.mark.parametrize("mechanism", ["TTP", "UCE", "ARF"])
def test_one_line_of_a_rollback_that_did_not_happen_fails(judged: Judge, mechanism: str, line: str) -> None:
    judgement = judged(with_line(RUNS[mechanism](), line, range(1)))
    assert said(judgement, "mechanism", "fail", "TRE acted")


@pytest.mark.parametrize("line", [f"{ME}{RESUMED}", f"2026-11-21 01:28:56,320 - m[m.py:9] - INFO - {THROWN}"])
def test_one_line_of_a_second_rollback_that_did_not_happen_fails(judged: Judge, line: str) -> None:
    judgement = judged(with_line(rolled_back_run(), line, range(1)))
    assert said(judgement, "mechanism", "fail", "rank 0 logs")


@pytest.mark.parametrize("words", [RESUMED.encode(), THROWN.encode()])
def test_a_rollback_without_its_line_is_not_believed(judged: Judge, words: bytes) -> None:
    run = rolled_back_run()
    name = "logs/train/worker_3.log"
    run.others[name] = b"".join(line for line in run.others[name].splitlines(keepends=True) if words not in line)
    assert said(judged(run), "mechanism", "fail", "rank 3 logs")
