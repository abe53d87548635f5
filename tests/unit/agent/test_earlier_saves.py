"""The step of a loaded file is that of its last save by an earlier process, where a record says it."""

from __future__ import annotations

import os
from pathlib import Path

from chaos.agent.earlier_saves import EarlierSaves, Save
from chaos.agent.record import Record
from tests.kit.own_record import own_record

OTHER = 1
"""The PID of a process that has saved nothing."""


def saved(record: Record, path: Path, step: int | None) -> None:
    """Record the end of a save."""
    record.write("checkpoint.end", kind="periodic", path=str(path), **({} if step is None else {"step": step}))


def test_the_last_save_of_a_file_counts_and_that_of_another_file_does_not(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        for step in (3, 6):
            saved(record, tmp_path / "latest.ckpt", step)
        saved(record, tmp_path / "other.ckpt", 9)
        saves = EarlierSaves(str(history), OTHER)
        # The file of a killed rank is longer than its content.
        assert saves.of(str(tmp_path / "latest.ckpt")) == saves.of(str(tmp_path / "latest")) == Save(6)
        assert saves.of(str(tmp_path / "never.ckpt")) is None


def test_a_save_of_this_process_or_without_a_step_says_nothing(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        saved(record, tmp_path / "x.ckpt", 3)
        assert EarlierSaves(str(history), os.getpid()).of(str(tmp_path / "x.ckpt")) is None
        saved(record, tmp_path / "x.ckpt", None)
    assert EarlierSaves(str(history), OTHER).of(str(tmp_path / "x.ckpt")) is None


def test_the_updates_that_a_save_lacks_are_part_of_it(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        path = str(tmp_path / "x.pt")
        record.write("checkpoint.end", kind="periodic", path=path, step=8, left_out=2)
        assert EarlierSaves(str(history), OTHER).of(path) == Save(8, 2)
        record.write("checkpoint.end", kind="periodic", path=path, step=9, left_out="many")
        assert EarlierSaves(str(history), OTHER).of(path) is None


def test_a_save_within_a_step_is_told_from_one_after_it(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        within, after = str(tmp_path / "within.pt"), tmp_path / "after.pt"
        record.write("step.begin", step=4)
        saved(record, Path(within), 4)
        record.write("step.end", step=4)
        saved(record, after, 4)
        saves = EarlierSaves(str(history), OTHER)
        assert (saves.of(within), saves.of(str(after))) == (Save(4, within=True), Save(4))


def test_a_save_that_a_thread_made_later_is_within_no_step(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        path = str(tmp_path / "x.pt")
        record.write("step.begin", step=6)
        record.write("checkpoint.end", kind="periodic", path=path, step=4, late=True)
        assert EarlierSaves(str(history), OTHER).of(path) == Save(4)


def test_an_end_of_life_checkpoint_says_its_step_itself(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        record.write("checkpoint.end", kind="end-of-life", path=str(tmp_path / "x.ckpt"), step=3)
        assert EarlierSaves(str(history), OTHER).of(str(tmp_path / "x.ckpt")) is None


def test_a_torn_line_is_no_save(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        saved(record, tmp_path / "x.ckpt", 3)
    torn = f'{{"seq":9,"mono":99,"event":"checkpoint.end","path":"{tmp_path}/x.ckpt","st'
    (history / "train-rank_1-1.jsonl").write_bytes(torn.encode() + b"\0" * 100)
    assert EarlierSaves(str(history), OTHER).of(str(tmp_path / "x.ckpt")) == Save(3)


def test_a_file_is_known_by_its_last_name(history: Path, tmp_path: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        saved(record, tmp_path / "x.tmp", 3)
        record.write("checkpoint.renamed", path=str(tmp_path / "x.tmp"), to=str(tmp_path / "x.pt"))
        saved(record, tmp_path / "x.tmp", 6)
        saves = EarlierSaves(str(history), OTHER)
        assert saves.of(str(tmp_path / "x.pt")) == Save(3)
        assert saves.of(str(tmp_path / "x.tmp")) == Save(6)


def test_another_process_of_the_same_rank_is_a_predecessor(history: Path) -> None:
    with own_record(history, run="run-1", rank=1):
        assert EarlierSaves(str(history), OTHER).has_predecessor(1)
        assert not EarlierSaves(str(history), os.getpid()).has_predecessor(1)
        assert not EarlierSaves(str(history), OTHER).has_predecessor(0)
        assert not EarlierSaves(str(history), OTHER).has_predecessor(11)
