"""What defects change: histories, checkpoints, other files. A mutation that changes nothing says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.history.reader import read_history
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.selftest.calls import called_again, started_anew
from chaos.selftest.ckpt_file import CkptFile, stored
from chaos.selftest.defect import Mutate, NothingToMutate
from chaos.selftest.files import copied, line_changed, line_doubled, moved, removed
from chaos.selftest.records import Records, chain, recorded
from tests.kit.runs.good_run import SAVED, VICTIM, good_run

CHECKPOINT = f"job/checkpoints/ttp_saved_checkpoints-step_{SAVED}/rank_0"
LOG = "logs/train/ttp/ttp_log.log.*"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return good_run().write(tmp_path / "run")


def test_an_event_is_changed_where_it_stands_and_the_record_stays_whole(run_dir: Path) -> None:
    recorded(lambda records: records.digest(1, 8, "resume").update(loss=(0.5).hex()))(run_dir)
    history = read_history(run_dir / "history")
    assert history.problems == ()
    (digest,) = history.select("digest", attempt="resume", rank=1, step=8)
    assert digest.data["loss"] == (0.5).hex()


def test_a_line_that_is_taken_away_without_new_numbers_leaves_a_gap(run_dir: Path) -> None:
    def drop(records: Records) -> None:
        records.drop(records.all("digest", attempt="resume", rank=1, step=8))

    recorded(drop, renumber=False)(run_dir)
    (problem,) = read_history(run_dir / "history").problems
    assert problem.kind == "seq"


def test_an_inserted_event_is_of_the_same_file_and_a_moment_later(run_dir: Path) -> None:
    recorded(lambda records: records.insert(records.first("fault.landed"), event="fault.missed"))(run_dir)
    history = read_history(run_dir / "history")
    (landed,), (missed,) = history.select("fault.landed"), history.select("fault.missed")
    assert (missed.seq, missed.mono, missed.wall) == (landed.seq + 1, landed.mono + 1000, landed.wall + 1000)
    assert history.problems == ()


def test_a_delay_moves_what_comes_after_and_only_in_these_files(run_dir: Path) -> None:
    before = read_history(run_dir / "history")
    since = before.select("step.end", attempt="resume", rank=2)[3].mono
    recorded(lambda records: records.delay(since, 5_000, files="resume-rank_2"))(run_dir)
    after = read_history(run_dir / "history")
    moved_by = {
        (event.attempt, event.rank, event.seq): other.mono - event.mono
        for event in before.events
        for other in after.events
        if (event.writer, event.attempt, event.rank, event.pid, event.seq)
        == (other.writer, other.attempt, other.rank, other.pid, other.seq)
        and (event.attempt, event.rank) in (("resume", 2), ("resume", 3))
        and event.writer == "agent"
    }
    assert set(moved_by.values()) == {0, 5_000}
    assert {rank for (_, rank, _), by in moved_by.items() if by} == {2}


def test_what_is_moved_over_a_moment_when_the_machine_was_busy_leaves_the_history_whole(run_dir: Path) -> None:
    def earlier(records: Records) -> None:
        exit_of = records.first("rank.exit", attempt="train")
        records.insert(exit_of, event="job.starved", mono=exit_of["mono"] - 10_000_000, since=0, until=0, seconds=0.4)
        records.files["harness.jsonl"].sort(key=lambda record: int(record["mono"]))
        records.delay(exit_of["mono"], -20_000_000, files="harness")

    recorded(earlier)(run_dir)
    history = read_history(run_dir / "history")
    assert (history.problems, history.select("job.starved")) == ((), [])


def test_a_new_process_has_a_history_and_an_exit_of_its_own(run_dir: Path) -> None:
    started_anew(3)(run_dir)
    history = read_history(run_dir / "history")
    assert history.problems == ()
    for event in ("rank.found", "agent.start", "rank.exit"):
        assert len({fact.pid for fact in history.select(event, attempt="train", rank=3)}) == 2, event


def test_a_handler_is_called_once_more(run_dir: Path) -> None:
    called_again("save_ckpt", 0)(run_dir)
    history = read_history(run_dir / "history")
    assert [
        event.event for event in history.select(attempt="train", rank=0) if event.data.get("name") == "save_ckpt"
    ] == [
        "handler.enter",
        "handler.exit",
        "handler.enter",
        "handler.exit",
    ]


def test_the_editor_writes_what_it_has_read(run_dir: Path) -> None:
    (path,) = (run_dir / CHECKPOINT).glob("*.ckpt")
    before = path.read_bytes()
    CkptFile(path).write()
    assert path.read_bytes() == before


def test_a_checkpoint_is_changed_as_the_reader_sees_it(run_dir: Path) -> None:
    (path,) = (run_dir / CHECKPOINT).glob("*.ckpt")
    before = read_saved_state(path)
    stored("ttp*/rank_0/*.ckpt", lambda file: file.set_number("global_step", 3))(run_dir)
    stored("ttp*/rank_0/*.ckpt", lambda file: file.flip_bit("layer1.weight", 9))(run_dir)
    stored("ttp*/rank_0/*.ckpt", lambda file: file.remove("moments.layer1.bias"))(run_dir)
    after = read_saved_state(path)
    assert after.numbers["global_step"] == 3
    assert before.digests.keys() - after.digests.keys() == {"moments.layer1.bias"}
    changed = {name for name in after.digests if after.digests[name] != before.digests[name]}
    assert changed == {"layer1.weight", "global_step"}


@pytest.mark.parametrize(
    ("mutate", "told"),
    [
        (recorded(lambda records: None), "the history is as it was"),
        (recorded(lambda records: records.first("handler.enter", name="rollback")), "no handler.enter"),
        (recorded(lambda records: records.drop_file("train-rank_7")), "no history file train-rank_7"),
        (stored("rank_9/*.ckpt", lambda file: file.remove("x")), "no checkpoint rank_9"),
        (stored("ttp*/rank_0/*.ckpt", lambda file: None), "is as it was"),
        (stored("ttp*/rank_0/*.ckpt", lambda file: file.remove("layer9")), "holds 0 tensors layer9"),
        (moved("job/nothing", "job/something"), "job/nothing is there 0 times"),
        (copied("job/checkpoints/*/*", "job/something"), "is there 2 times"),
        (removed("job/nothing"), "there is no job/nothing"),
        (line_changed(LOG, "STATE_OP_NOWHERE", "STATE_OP_REPAIR"), "nothing in"),
        (line_doubled(LOG, "STATE_OP_NOWHERE"), "nothing in"),
    ],
)
def test_a_mutation_that_changes_nothing_says_so(run_dir: Path, mutate: Mutate, told: str) -> None:
    with pytest.raises(NothingToMutate, match=told):
        mutate(run_dir)


def test_files_are_moved_copied_and_removed_in_order(run_dir: Path) -> None:
    chain(
        moved(CHECKPOINT, "job/moved"),
        copied("job/moved", "job/copied"),
        removed("job/moved"),
        line_doubled(LOG, "finish rename"),
    )(run_dir)
    assert len(list((run_dir / "job/copied").glob("*.ckpt"))) == 1
    assert not (run_dir / "job/moved").exists()
    (log,) = run_dir.glob(LOG)
    assert log.read_text("utf-8").count("finish rename") == 2


def test_the_victim_is_who_the_builder_says(run_dir: Path) -> None:
    assert Records(run_dir).first("fault.injecting")["rank"] == VICTIM
