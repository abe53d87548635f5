"""The terminal shows a run in few lines, at any width, and what a job says there is text."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from chaos.live import follow
from chaos.live.groups import group_states, grouping
from chaos.live.state import LETTERS, BaselineMaker, CoreHolder, CoresWait, LiveState, RankState
from chaos.live.terminal.panel import cores_lines, lines, status
from chaos.live.terminal.several import lines_of_runs
from chaos.live.terminal.strip import strip
from chaos.live.words import STAGES, clock
from tests.kit.plans import plan_with
from tests.kit.runs.live_states import live_state, printed
from tests.kit.runs.replayed_run import begun, recorded
from tests.kit.runs.replayed_run import lines as recorded_lines

_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def plain(state: LiveState, width: int, height: int = 40) -> list[str]:
    return _CONTROL.sub("", printed(lines(state, height), width)).splitlines()


@pytest.mark.parametrize("width", [80, 200])
def test_a_run_is_a_few_lines_that_fit(width: int) -> None:
    shown = plain(live_state(), width)
    assert all(cell_len(line) <= width for line in shown)
    assert shown[0] == "cell 2 of 5  0:31 of 10:00  training  step 6 of 12  plain-kill-rank[victim=2]"
    assert shown[1:4] == [
        "ranks   S=xX",
        "        = training 1  S saving 1  x ended by fault 1  X ended unplanned 1",
        "fault   kill: kill, rank 2: landed at step 5, step.end 3 s ago",
    ]
    assert shown[4].startswith("phase   TTP: save 17.0 s of 15 s, over its budget; recovery 3.2 s of 3:00; ")
    assert shown[5:] == [
        "loss    rank 0, step 5: 1.5, fault-free 1.25, difference +0.25",
        "waits   4:48 left: every rank ends; rank 0: step 6",
        "ends    1 as planned, 1 unplanned: rank 3, exit code 3",
    ]


def test_without_colours_nothing_is_lost() -> None:
    uncoloured = printed(lines(live_state(), 40), 80, no_color=True)
    assert _CONTROL.sub("", uncoloured).splitlines() == plain(live_state(), 80)
    assert len(set(LETTERS.values())) == len(LETTERS)


@pytest.mark.parametrize("height", [1, 3, 5, 8])
def test_of_a_small_terminal_the_most_important_lines_are_used(height: int) -> None:
    shown = plain(live_state(), 20, height)
    assert len(shown) <= max(3, height - 2)
    assert shown[0].startswith("cell 2 of 5")
    assert any("S=xX" in line for line in shown)


def test_what_a_job_says_is_text(tmp_path: Path) -> None:
    """Neither markup nor a control sequence of a name, of a rank's record or of a command reaches the terminal."""
    bad = "[bold red]\n\t\x1b[2J\x1b]0;title\x07\r\u202e[/nothing]"
    place = begun(recorded("plain-kill-rank", tmp_path / "recorded"), tmp_path / "again")
    for _, _, name, line in recorded_lines(tmp_path / "recorded")[:120]:
        hostile = line.replace(b'"save_ckpt"', b'"[bold red]\\u001b[2J"').replace(b'"step.end"', b'"\\u001b[2J"')
        with (place / "history" / name).open("ab") as file:
            file.write(hostile)
    (place / "history" / "train-\x1b[2J.jsonl").write_text("\x1b[2J\n")
    state = follow(place).state()
    holder = CoreHolder("0-1", 7, "root", 1.0, bad, bad)
    text = printed([*lines(state, 40), *lines(live_state(scenario=bad, problems=(bad,)), 40)], 200)
    text += printed(cores_lines(CoresWait(7, 1.0, 9.0, 60.0, (holder,)), 10.0), 200)
    maker = BaselineMaker(7, bad, 1.0, 9.0, bad)
    text += printed(lines(live_state(baseline_maker=maker), 40), 200)
    assert "[bold red]" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", _CONTROL.sub("", text))


def test_a_thousand_ranks_are_a_strip_of_groups() -> None:
    plan = plan_with(ranks=1024, nodes=128, replica_groups=tuple((rank,) for rank in range(1024)))
    groups = grouping(plan)
    assert len(groups) <= 64
    assert Counter(rank for _, _, members in groups for rank in members) == Counter(range(1024))
    ranks = tuple(RankState(rank, 0, 0, "train", "faulted" if rank == 777 else "training") for rank in range(1024))
    state = live_state(ranks=ranks, groups=tuple(group_states(groups, ranks)))
    assert strip(state).plain == "=" * 48 + "F" + "=" * 15
    shown = plain(state, 80)
    assert shown[2].split() == ["=", "training", "1023", "F", "faulted", "1"]


@pytest.mark.parametrize(
    ("layout", "kind", "count"),
    [
        ({"ranks": 1024, "nodes": 16}, "node", 16),
        ({"ranks": 512, "replica_groups": tuple(tuple(range(n, 512, 8)) for n in range(8))}, "replica group", 8),
        ({"ranks": 100}, "ranks", 50),
        ({"ranks": 4}, "ranks", 1),
    ],
)
def test_ranks_are_grouped_by_what_a_reader_can_survey(layout: dict[str, object], kind: str, count: int) -> None:
    groups = grouping(plan_with(**layout))
    assert ({group[0] for group in groups}, len(groups)) == ({kind}, count)


def test_replica_groups_of_neighbours_are_apart_in_the_strip() -> None:
    ranks = tuple(RankState(rank, 0, rank // 2, "train", "training") for rank in range(6))
    assert strip(live_state(ranks=ranks)).plain == "== == =="
    mixed = tuple(RankState(rank, 0, rank % 2, "train", "training") for rank in range(6))
    assert strip(live_state(ranks=mixed)).plain == "======"


HOLDER = CoreHolder("0-1", 4711, "root", 40.0, "/reports/kill-rank-1", "chaos run kill-rank")
WAIT = CoresWait(815, 70.0, 30.0, 14_400.0, (HOLDER,))
WAITS = [
    "waits   3:59:30 left: a core is free; process 815 has waited 0:30",
    "        cores 0-1: process 4711 of root, for 1:00: kill-rank-1",
]


def test_who_holds_the_cores_is_shown_while_a_run_waits() -> None:
    assert _CONTROL.sub("", printed(cores_lines(WAIT, 100.0), 80)).splitlines() == WAITS


def test_who_makes_the_fault_free_run_is_shown_while_it_is_waited_for() -> None:
    maker = BaselineMaker(4711, "root", 70.0, 30.0, "baseline-0a0a-1")
    shown = plain(live_state(stage="baseline", ranks=(), baseline_maker=maker), 80)
    assert shown[0].split("  ")[2] == "fault-free run first"
    assert "made by process 4711 of root, for 0:30: baseline-0a0a-1" in shown


def test_a_stage_has_the_same_words_on_a_line_and_in_the_panel() -> None:
    for stage, words in STAGES.items():
        state = live_state(stage=stage)
        assert state.stage_words == words
        assert f"  {words}  " in plain(state, 200)[0] and f" {words} " in status(state).plain
    assert live_state(stage="ended", verdict="pass").stage_words == "ended: pass"
    assert live_state(baseline_of=True).stage_words == "fault-free run"


def test_a_loss_that_only_a_log_holds_says_so() -> None:
    loss = replace(live_state().loss, by_log=True)  # type: ignore[type-var]
    assert "loss    rank 0, step 5 by its log: 1.5, fault-free 1.25, difference +0.25" in plain(
        live_state(loss=loss), 80
    )


def test_one_line_has_the_clock_the_cell_the_step_and_the_deadline() -> None:
    text = status(live_state()).plain
    for part in ("0:31 ", "cell 2 of 5", "training", "S=xX", "step 6 of 12", "save 17.0 s of 15 s", "1 unplanned"):
        assert part in text
    assert text.endswith("plain-kill-rank[victim=2] 4:48 left: every rank ends")


def several(room: int, *states: LiveState, waits: tuple[CoresWait, ...] = ()) -> list[str]:
    return [line.plain for line in lines_of_runs(states, waits, 100.0, room)]


def test_runs_are_shown_as_chaos_run_shows_them_where_there_is_room() -> None:
    state = live_state()
    panel = [line.plain for line in lines(state, 40)]
    assert several(20, state) == panel
    assert several(20, state, state) == panel * 2
    assert several(8, state, state) == [line.plain for line in lines(state, 6)] * 2
    assert several(5, state, state) == [status(state).plain] * 2
    assert several(3, *[state] * 5) == [status(state).plain] * 2 + ["and 3 more runs"]
    assert several(1, state) == [status(state).plain]


def test_harnesses_that_wait_for_cores_stand_beside_the_runs() -> None:
    assert several(20, waits=(WAIT,)) == WAITS
    assert several(20, live_state(), waits=(WAIT,))[-2:] == WAITS
    assert len(several(4, live_state(), waits=(WAIT,) * 9)) <= 4


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (7.9, "0:07"), (750, "12:30"), (3723, "1:02:03"), (-1, "0:00")]
)
def test_a_clock_has_hours_where_they_are_needed(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_the_cores_of_a_process_that_has_gone_are_held_by_nobody(tmp_path: Path) -> None:
    from chaos.base.wait import Patience
    from chaos.live import waiting_for_cores
    from chaos.machine.leases import Leases

    leases = Leases(tmp_path / "leases", cores=(0, 1))
    assert waiting_for_cores(leases) == ()
    with leases.take_cores(1, wait=Patience(30)) as lease:
        lease.name_run("/reports/kill-rank-1")
        (holder,) = waiting_for_cores(leases)
        assert (holder.cores, holder.pid, holder.run) == ("0", os.getpid(), "/reports/kill-rank-1")
    assert waiting_for_cores(leases) == ()
