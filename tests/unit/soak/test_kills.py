"""A soak of kills can be resumed and added up, and its moments can be had again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chaos.soak.kill_soak import CompleteRun, Kill, KillRecord, draw, tally

WHOLE = CompleteRun("kill-rank", "", "c0de", 20.0, 40)
KILL = Kill(
    "kill-rank", "", "c0de", 1, 7, "1.000 s after the start", True, "train: fault.landed", 9.5, ["job: ended"], []
)


def test_a_seed_gives_its_moments_again_and_they_are_spread_over_time_and_history() -> None:
    moments = [draw(7, WHOLE.of, number, WHOLE) for number in range(200)]
    assert moments == [draw(7, WHOLE.of, number, WHOLE) for number in range(200)]
    assert moments != [draw(8, WHOLE.of, number, WHOLE) for number in range(200)]
    in_time = [moment.seconds for moment in moments if moment.line is None]
    assert 60 < len(in_time) < 140 and min(in_time) < 1 and max(in_time) > 18
    assert {moment.line for moment in moments if moment.line is not None} > set(range(5, 36, 10))
    assert all(moment.seconds <= 0.2 for moment in moments if moment.line is not None)
    assert 25 < sum(moment.heal is not None for moment in moments) < 75


def test_a_run_without_a_history_is_killed_by_time() -> None:
    assert {draw(7, WHOLE.of, number, replace(WHOLE, lines=0)).line for number in range(20)} == {None}


def test_what_was_recorded_is_read_back_and_other_lines_do_not_count(tmp_path: Path) -> None:
    record = KillRecord(tmp_path / "kills.jsonl")
    record.append(WHOLE)
    record.append(KILL)
    with (tmp_path / "kills.jsonl").open("a") as file:
        file.write('{"record": "kill", "scenario": 1}\n[]\n{"record": "kill", "scen')
    record.append(replace(KILL, number=2, left=["process 5"]))
    assert record.complete_runs() == [WHOLE]
    assert record.kills() == [KILL, replace(KILL, number=2, left=["process 5"])]


def test_only_runs_that_were_killed_count() -> None:
    kills = [
        KILL,
        replace(KILL, killed=False),
        replace(KILL, done=[]),
        replace(KILL, left=["x"]),
        replace(KILL, cell="a"),
    ]
    assert tally(WHOLE.of, kills).to_json() == {
        "scenario": "kill-rank",
        "cell": "",
        "killed": 3,
        "healed": 2,
        "left": 1,
        "hit": [],
        "missed": [],
    }


def test_the_moments_go_through_the_acts_of_the_faults_one_after_another() -> None:
    complete_run = replace(WHOLE, acts=[17, 12, 21])
    drawn = [draw(7, complete_run.of, number, complete_run) for number in range(1, 200, 4)]
    assert [moment.line for moment in drawn[:7]] == [17, 12, 21, 17, 12, 21, 17]
    others = [draw(7, complete_run.of, number, complete_run) for number in range(1, 200) if number % 4 != 1]
    assert len({moment.line for moment in others}) > 20, "all other lines have their turn too"


def test_an_act_that_lasts_a_moment_is_met_in_that_moment() -> None:
    complete_run = replace(WHOLE, acts=[17, 12, 21], lasted=[0.02, 30.0, 0.0])
    drawn = [draw(7, complete_run.of, number, complete_run) for number in range(1, 400, 4)]
    late = {line: max(moment.seconds for moment in drawn if moment.line == line) for line in complete_run.acts}
    assert 0.005 < late[17] <= 0.02 < late[12] <= 0.2
    assert late[21] == 0


def test_kinds_of_undo_that_no_kill_has_hit_have_their_turn_first() -> None:
    complete_run = replace(WHOLE, acts=[17], lasted=[0.02], undo=["end-job", "note-kept", "unmount-storage"])
    drawn = [draw(7, complete_run.of, number, complete_run, ["end-job"]) for number in range(1, 40, 4)]
    assert [moment.undo for moment in drawn[:3]] == ["note-kept", "unmount-storage", "note-kept"]
    assert all(moment.seconds <= 0.02 for moment in drawn)
    assert str(replace(drawn[0], heal=None)).endswith("s after a step note-kept was open")
    assert all(draw(7, complete_run.of, number, complete_run).undo is None for number in range(200) if number % 4 != 1)
    assert draw(7, complete_run.of, 1, complete_run, complete_run.undo).line == 17


def test_a_kind_of_undo_that_was_open_at_no_kill_is_told() -> None:
    kills = [
        replace(KILL, open=["end-job", "leave-group"]),
        replace(KILL, open=["end-job", "unmount-storage"], killed=False),
        replace(KILL, open=["switch-off"], cell="a"),
    ]
    answer = tally(WHOLE.of, kills, ["end-job", "leave-group", "switch-off", "unmount-storage"])
    assert (answer.hit, answer.missed) == (["end-job", "leave-group"], ["switch-off", "unmount-storage"])


def test_records_of_before_the_kinds_of_undo_were_told_are_read(tmp_path: Path) -> None:
    path = tmp_path / "kills.jsonl"
    path.write_text(
        '{"record": "whole", "scenario": "a", "cell": "", "code": "c", "seconds": 1.0, "lines": 2}\n'
        '{"record": "kill", "scenario": "a", "cell": "", "code": "c", "number": 1, "seed": 1, "moment": "m", "killed": '
        'true, "reached": "r", "seconds": 1.0, "done": [], "left": []}\n'
    )
    record = KillRecord(path)
    assert [run.undo for run in record.complete_runs()] == [[]] and [kill.open for kill in record.kills()] == [[]]
