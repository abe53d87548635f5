"""The gate: a slowdown is found, noise raises no alarm, and what cannot be compared is said."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.trends.compared import Rules
from chaos.trends.findable import findable
from chaos.trends.gate import GateResult, gate, needed_runs
from chaos.trends.gate_text import sentences
from chaos.trends.rank_test import share_longer
from chaos.trends.row import RunRow
from chaos.trends.series import strata_of
from chaos.trends.slowdown import holm, p_slower
from chaos.trends.store import FILE, changing, put_rows
from tests.kit.runs.many_runs import PHASES, SCENARIOS, a_row, nights
from tests.unit.cli.kit import Ended

SLOW_FROM = 350
WINDOW = len(SCENARIOS) * 60
"""More rows than the gate looks at in a night."""


def of_night(rows: Sequence[RunRow], night: int) -> GateResult:
    """The gate on the morning after a night."""
    end = len(SCENARIOS) * (night + 1)
    return gate(rows[max(0, end - WINDOW) : end])


def nights_to_find(rows: Sequence[RunRow]) -> int | None:
    """How many nights with a slower phase it takes until the gate names it."""
    for night in range(SLOW_FROM, SLOW_FROM + 10):
        if any((slower.name, slower.phase) == ("kill-rank", "load") for slower in of_night(rows, night).slower):
            return night - SLOW_FROM + 1
    return None


def false_alarms(rows: Sequence[RunRow]) -> int:
    """In how many of the 300 good nights the gate fails."""
    return sum(of_night(rows, night).verdict == "fail" for night in range(SLOW_FROM - 300, SLOW_FROM))


def test_a_slowdown_of_15_percent_is_found_within_10_nights_without_a_false_alarm_before() -> None:
    rows = nights(22, slow_from=SLOW_FROM)
    assert len(rows) == 500 * len(SCENARIOS)
    assert false_alarms(rows) <= 1
    found = nights_to_find(rows)
    assert found is not None and found <= 10


@pytest.mark.nightly
def test_slowdowns_are_found_and_alarms_are_rare_whatever_the_seed() -> None:
    histories = [nights(seed, 360, slow_from=SLOW_FROM) for seed in range(40)]
    assert sum(nights_to_find(rows) is not None for rows in histories) >= 38
    assert max(false_alarms(rows) for rows in histories) <= 1


@pytest.mark.nightly
def test_busy_nights_raise_no_more_alarms_than_others() -> None:
    histories = [nights(seed, 350, busy_nights=0.1) for seed in range(40)]
    assert max(false_alarms(rows) for rows in histories) <= 1


def test_the_message_has_the_test_its_probability_and_the_effect() -> None:
    rows = [replace(row, code="c0df") if index >= 120 else row for index, row in enumerate(steady(50, slow_from=40))]
    (slower,) = gate(rows).slower
    assert slower.share == pytest.approx(0.15, abs=0.04)
    text = next(sentences(gate(rows)))
    assert text.startswith("kill-rank: load got slower: +1")
    assert "more than 5.0% with 98% confidence" in text
    assert "one-sided Mann-Whitney test, p = " in text and "(limit 7.4e-05 for 27 phases compared)" in text
    assert "changed with it: code c0de → c0df" in text


def steady(number: int, **changes: Any) -> list[RunRow]:
    """Nights with little noise."""
    return nights(3, number, noise=0.02, **changes)


def test_the_smallest_slowdown_that_could_have_been_found_is_where_the_gate_begins_to_find_it() -> None:
    rows = nights(7, 40, noise=0.1, slow_from=30, by=-0.2)
    entries = findable(rows, Rules())
    assert len(entries) == 27 and entries[0].share is not None and entries[0].share < 0.3
    (load,) = [entry for entry in entries if entry.key == ("kill-rank", "load")]
    assert load.share is not None
    for beyond in (True, False):
        by = (1 + load.share) / (1 + share_longer(strata_of(*halves(rows))["load"])) * (1.0 if beyond else 0.98)
        slower = [with_load(row, by) if row in halves(rows)[0] else row for row in rows]
        assert bool([found for found in gate(slower).slower if found.phase == "load"]) is beyond
    assert [entry.share for entry in findable(rows[-3 * 14 :], Rules())] == [None] * 27, "too few runs find nothing"


def halves(rows: Sequence[RunRow]) -> tuple[list[RunRow], list[RunRow]]:
    """The newest ten runs of kill-rank, and those before."""
    cell = [row for row in rows if row.scenario == "kill-rank"]
    return cell[-10:], cell[:-10]


def with_load(row: RunRow, factor: float) -> RunRow:
    times = {phase.name: (phase.seconds or 0) * (factor if phase.name == "load" else 1) for phase in row.phases}
    return replace(row, phases=a_row(phases=times).phases)


def test_more_runs_find_a_smaller_slowdown_in_noisy_times() -> None:
    rows = nights(4, 240, noise=0.2, slow_from=180)
    assert gate(rows[-3 * 60 :]).slower == ()
    assert [slower.phase for slower in gate(rows, Rules(against=180, newest=60)).slower] == ["load"]
    assert gate(nights(4, 240, noise=0.2), Rules(against=180, newest=60)).slower == ()


def test_a_phase_may_get_as_much_slower_as_is_allowed() -> None:
    rows = steady(50, slow_from=40, by=0.15)
    assert gate(rows).verdict == "fail"
    assert gate(rows, Rules(max_slower=0.2)).verdict == "pass"
    assert gate(steady(50, slow_from=40, by=0.5), Rules(max_slower=0.2)).verdict == "fail"


def test_a_slowdown_too_small_to_matter_is_not_reported() -> None:
    rows = nights(3, 50, noise=0.001, slow_from=40, by=0.02)
    assert gate(rows).verdict == "pass"


def test_noise_that_hides_a_slowdown_is_no_alarm_though_its_ranks_are_rare() -> None:
    before = [1 + 0.2 * math.sin(7 * number) for number in range(30)]
    rare = [
        a_row(n, phases={"load": seconds}) for n, seconds in enumerate([*before, *[1.21 + n / 999 for n in range(10)]])
    ]
    assert p_slower(strata_of(rare[30:], rare[:30])["load"], 0) < 1e-6
    assert gate(rare).slower == ()


def test_the_method_of_holm_admits_more_than_dividing_by_all() -> None:
    found = holm([0.02, 0.04, 0.0001], lambda p: p, 0.05)
    assert [p for p, _ in found] == [0.0001, 0.02, 0.04]
    assert [limit for _, limit in found] == pytest.approx([0.05 / 3, 0.05 / 2, 0.05])
    assert holm([0.03, 0.03, 0.0001], lambda p: p, 0.05)[1:] == []


def test_runs_on_a_loaded_machine_are_compared_among_themselves() -> None:
    slow = {name: seconds * 1.4 for name, seconds in PHASES.items()}
    rows = [a_row(n, phases=slow, load=9.0, processors=4) if n % 9 == 0 or n >= 30 else a_row(n) for n in range(40)]
    assert gate(rows).slower == ()
    alike = [replace(row, load=0.5) for row in rows]
    assert len(gate(alike).slower) == len(PHASES) + 1


def test_newest_runs_that_are_all_on_a_loaded_machine_are_unknown() -> None:
    rows = [a_row(n, load=9.0 if n >= 30 else 0.5, processors=4) for n in range(40)]
    assert gate(rows).verdict == "unknown"
    assert "40 passing runs, 0 of them on like hosts with a like load" in "\n".join(sentences(gate(rows)))


def test_a_slower_host_is_compared_with_itself() -> None:
    slow = {name: seconds * 1.4 for name, seconds in PHASES.items()}
    rows = [a_row(n, phases=slow, host="old") if n % 9 == 0 or n >= 30 else a_row(n) for n in range(40)]
    assert gate(rows).slower == ()


def test_hosts_whose_names_never_come_back_are_compared() -> None:
    rows = [replace(row, host=f"pod-{row.run}") for row in steady(50, slow_from=40)]
    (slower,) = gate(rows).slower
    assert slower.phase == "load" and "host" in slower.changes


def test_a_faster_phase_is_no_finding() -> None:
    assert gate(steady(50, slow_from=40, by=-0.3)).verdict == "pass"


def test_too_few_runs_are_unknown_and_it_says_how_many_are_needed() -> None:
    rows = steady(12)
    result = gate(rows)
    assert result.verdict == "unknown" and not result.slower
    needed = needed_runs(Rules(), result.tests)
    assert f"kill-rank: too few samples: 12 passing runs, {needed} are needed (detection" in "\n".join(
        sentences(result)
    )
    assert gate(steady(needed - 1)).verdict == "unknown"
    assert gate(steady(needed)).verdict == "pass"


def test_one_run_is_named_without_a_word_about_hosts() -> None:
    said = "\n".join(sentences(gate([a_row(0)])))
    assert ": too few samples: 1 passing run, " in said and "like hosts" not in said
    assert "phases of 1 cell: the newest 10 runs" in said


def test_no_run_at_all_is_unknown() -> None:
    assert gate([]).verdict == "unknown"
    assert list(sentences(gate([]))) == ["unknown: there are no runs to compare"]


def test_a_phase_that_is_no_longer_measured_is_unknown() -> None:
    short = {name: seconds for name, seconds in PHASES.items() if name != "load"}
    rows = [a_row(number, phases=PHASES if number < 30 else short) for number in range(40)]
    assert gate(rows).verdict == "unknown"
    assert "kill-rank: not measured in the newest passing runs: load" in list(sentences(gate(rows)))


def failed(row: RunRow, headline: str = "Resume: the moments were not restored") -> RunRow:
    return replace(row, verdict="fail", headline=headline)


def test_a_worse_verdict_is_a_finding_with_its_reason() -> None:
    rows = steady(40)
    rows[-3] = replace(failed(rows[-3]), code="c0df")
    result = gate(rows)
    assert [worse.name for worse in result.worse] == ["kill-rank"] and not result.flaky
    assert "the verdict got worse: fail in" in next(sentences(result))
    assert "Resume: the moments were not restored; changed with it: code c0de → c0df" in next(sentences(result))


def test_a_verdict_that_was_always_bad_is_not_worse() -> None:
    assert gate([failed(row) for row in steady(40)]).worse == ()
    assert gate([replace(row, verdict="unknown") for row in steady(40)]).worse == ()


def test_unknown_after_passes_is_worse() -> None:
    rows = [*steady(40), replace(a_row(40), verdict="unknown", headline="no evidence")]
    assert [(worse.verdict, worse.usual) for worse in gate(rows).worse] == [("unknown", "pass")]


def test_a_flip_on_one_version_is_flaky() -> None:
    rows = steady(40)
    rows[-6] = failed(rows[-6])
    (flaky,) = gate(rows).flaky
    assert (flaky.name, flaky.passed, flaky.failed) == ("kill-rank", 9, 1)
    assert "kill-rank: flaky: 9 passed and 1 failed of the newest runs, all on one version" in "\n".join(
        sentences(gate(rows))
    )


def test_an_interrupted_run_is_neither_good_nor_bad() -> None:
    rows = steady(40)
    stopped = replace(rows[-1], verdict="unknown", headline="interrupted; job ended; faults undone; nothing left")
    rows += [replace(stopped, run=f"{row.run}-again", scenario=row.scenario) for row in rows[-3:]]
    result = gate(rows)
    assert (result.verdict, result.worse, result.interrupted) == ("pass", (), 3)
    assert "left out, interrupted: 3 runs" in list(sentences(result))
    assert gate([replace(row, headline="deadline of the save ran out") for row in rows]).worse != ()


def test_a_flip_with_a_new_version_is_not_flaky() -> None:
    rows = [replace(row, mindspore="2.9.0") if index < 117 else row for index, row in enumerate(steady(40))]
    rows[-6] = failed(rows[-6])
    assert gate(rows).flaky == ()


def test_a_finding_that_shows_now_and_then_is_neither_flaky_nor_worse() -> None:
    rows = [replace(row, finding="sometimes") for row in steady(40)]
    rows[-3], rows[-6] = failed(rows[-3]), failed(rows[-6])
    assert gate(rows).verdict == "pass"


@pytest.mark.parametrize("finding", ["always", "sometimes"])
def test_a_known_finding_hides_no_other_failure(finding: str) -> None:
    usual = [failed(a_row(number, finding=finding)) for number in range(39)]
    assert gate([*usual, failed(a_row(39, finding=finding))]).worse == ()
    result = gate([*usual, failed(a_row(39, finding="beyond"), "hygiene: processes are left")])
    assert [(worse.verdict, worse.usual) for worse in result.worse] == [("fail", "finding")]
    assert "fail in" in (text := next(sentences(result))) and "nothing but its known finding in 39 of the runs" in text


def test_a_fail_beyond_a_finding_that_shows_now_and_then_is_flaky() -> None:
    rows = [replace(row, finding="sometimes") for row in steady(40)]
    rows[-3], rows[-6] = failed(rows[-3]), failed(replace(rows[-6], finding="beyond"))
    (flaky,) = gate(rows).flaky
    assert (flaky.passed, flaky.failed, flaky.last_failed) == (8, 1, rows[-6].run)


def test_unknown_is_worse_for_a_finding_that_shows_now_and_then_too() -> None:
    rows = [replace(row, finding="sometimes") for row in steady(40)]
    rows.append(replace(a_row(40), finding="sometimes", verdict="unknown", headline="no evidence"))
    assert [worse.verdict for worse in gate(rows).worse] == ["unknown"]


def test_the_only_run_of_a_cell_that_did_not_pass_is_no_pass() -> None:
    result = gate([*steady(40), failed(a_row(40, "new"))])
    assert result.verdict == "unknown" and [run.name for run in result.only_runs] == ["new"]
    assert "new: fail in its only run" in next(sentences(result))
    assert next(sentences(result)).endswith("with nothing to compare it with: Resume: the moments were not restored")
    assert gate([*steady(40), failed(a_row(40, "new", finding="always"))]).verdict == "pass"
    assert gate([*steady(40), a_row(40, "new", phases={}, total=None)]).verdict == "pass"


def test_what_changed_is_that_since_the_runs_before_also_where_a_phase_was_not_always_measured() -> None:
    rows = [row for row in steady(50, slow_from=40) if row.scenario == "kill-rank"]
    rows = [replace(row, code="new") if index >= 40 else row for index, row in enumerate(rows)]
    rows[-2] = replace(rows[-2], phases=tuple(phase for phase in rows[-2].phases if phase.name != "load"))
    (slower,) = [slower for slower in gate(rows).slower if slower.phase == "load"]
    assert slower.samples == (30, 9) and slower.changes == {"code": ("c0de", "new")}


def test_times_of_failed_runs_and_of_soaks_are_no_samples() -> None:
    slow = {name: seconds * 3 for name, seconds in PHASES.items()}
    rows = [a_row(number) for number in range(40)]
    rows += [failed(a_row(number, phases=slow)) for number in range(40, 50)]
    assert gate(rows).slower == ()
    rows = [a_row(number) for number in range(40)]
    rows += [a_row(number, phases=slow, soak=True) for number in range(40, 50)]
    assert gate(rows).verdict == "pass"
    assert len(gate(rows, soak=True).slower) == len(PHASES) + 1


def test_runs_in_another_setting_are_another_series() -> None:
    slow = {name: seconds * 3 for name, seconds in PHASES.items()}
    rows = [a_row(number) for number in range(40)]
    rows += [a_row(number, phases=slow, platform="ssh") for number in range(40, 60)]
    result = gate(rows)
    assert result.slower == () and result.cells == 1 and result.stale == ("kill-rank (local, standin, 4 ranks)",)


@pytest.fixture
def stored(reports: Path) -> Callable[..., None]:
    """Put rows into the store of the reports directory."""

    def put(rows: Sequence[RunRow]) -> None:
        reports.mkdir(exist_ok=True)
        with changing(reports / FILE) as connection:
            put_rows(connection, rows)

    return put


def test_the_command_ends_with_the_judgement(chaos: Callable[..., Ended], stored: Callable[..., None]) -> None:
    stored(steady(40))
    ended = chaos("gate", "--against", "last:30")
    smallest, judgement = ended.out.splitlines()
    assert (ended.code, judgement) == (
        0, "pass: nothing got worse in 27 phases of 3 cells: the newest 10 runs against up to 30 before them",
    )  # fmt: skip
    assert smallest.startswith("the smallest slowdown that could have been found, in all of the newest 10 runs: ")
    stored([failed(a_row(40))])
    ended = chaos("gate", "kill-rank", "--json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["verdict"], answer["worse"][0]["verdict"]) == (1, "fail", "fail")


def test_too_few_runs_end_the_command_with_2(chaos: Callable[..., Ended], stored: Callable[..., None]) -> None:
    stored(steady(5))
    ended = chaos("gate")
    assert ended.code == 2 and "are needed" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "30"], "'30' is not last:N, for example last:30"),
        (["--max-slower", "0.2"], "'0.2' is not a percentage, for example 20%"),
        (["kill-rnk"], "there is no run of 'kill-rnk'; did you mean 'kill-rank'?"),
        (["--reports", "nowhere"], "there is no directory nowhere"),
    ],
)
def test_what_cannot_be_done_is_told(
    chaos: Callable[..., Ended], stored: Callable[..., None], arguments: list[str], message: str
) -> None:
    stored(steady(1))
    ended = chaos("gate", *arguments)
    assert ended.code == 64 and message in ended.err
