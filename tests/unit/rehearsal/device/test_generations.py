"""Where the ranks meet, and where the new process of a lost one finds them."""

from __future__ import annotations

from pathlib import Path

from chaos.rehearsal.device.generations import Generations


def test_all_ranks_meet_in_one_place_and_after_a_stop_in_the_next(tmp_path: Path) -> None:
    one, other = Generations(str(tmp_path), "train"), Generations(str(tmp_path), "train")
    assert one.place() == other.place() == str(tmp_path / "train-1")
    one.announce_next()
    assert one.place() == other.place() == str(tmp_path / "train-1")  # nobody has gone on yet
    other.announce_next()
    one.enter_next()
    other.enter_next()
    assert one.place() == other.place() == str(tmp_path / "train-2")


def test_a_new_process_joins_the_newest_of_its_own_attempt(tmp_path: Path) -> None:
    survivor = Generations(str(tmp_path), "train")
    survivor.announce_next()
    (tmp_path / "resume-7").mkdir()
    new = Generations(str(tmp_path), "train")
    assert new.place() == str(tmp_path / "train-2")
    survivor.enter_next()
    assert survivor.place() == new.place()


def test_a_new_process_keeps_out_of_a_generation_of_those_that_there_were(tmp_path: Path) -> None:
    """An online repair has failed and its rank is replaced: the new process may look before the survivors go on."""
    survivor = Generations(str(tmp_path), "train")
    survivor.announce_next()
    survivor.enter_next(same_processes=True)
    new = Generations(str(tmp_path), "train")
    assert new.place() == str(tmp_path / "train-3") != survivor.place()
    survivor.enter_next()
    assert survivor.place() == new.place()
    # The next stop opens a generation to whoever comes.
    survivor.announce_next()
    assert Generations(str(tmp_path), "train").place() == str(tmp_path / "train-4")
