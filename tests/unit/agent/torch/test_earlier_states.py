"""The step of a state that a process gets without a load is that after which the rank has recorded it."""

from __future__ import annotations

import os
from pathlib import Path

from chaos.agent.torch.earlier_states import EarlierStates
from tests.kit.own_record import own_record

OTHER = 1
"""The PID of a process that has recorded nothing."""


def test_a_state_has_the_steps_after_which_the_rank_held_its_values(history: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        record.write("train.begin", initial_step=2)
        record.write("initial", parameters={"weight": "a"})
        record.write("digest", step=3, parameters={"weight": "b", "optimizer.momentum.0": "c"})
        record.write("digest", step=4, parameters={"weight": "d"})
        record.write("digest", step=5, parameters={"weight": "d"})
        record.write("digest", step=6, loss=None)
        states = EarlierStates(str(history), 0, OTHER)
        assert [states.steps_of({"weight": value}) for value in "abde"] == [{2}, {3}, {4, 5}, set()]
        assert states.steps_of({"weight": "a", "bias": "b"}) == set()


def test_the_states_of_this_process_and_of_other_ranks_do_not_count(history: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        record.write("digest", step=3, parameters={"weight": "b"})
        assert EarlierStates(str(history), 1, OTHER).steps_of({"weight": "b"}) == set()
        assert EarlierStates(str(history), 0, os.getpid()).steps_of({"weight": "b"}) == set()


def test_a_save_of_any_other_process_is_known(history: Path) -> None:
    with own_record(history, run="run-1", rank=0) as record:
        states = EarlierStates(str(history), 1, OTHER)
        assert not states.any_saved()
        record.write("checkpoint.end", kind="periodic", path="/x.pt", step=4)
        assert states.any_saved()
        assert not EarlierStates(str(history), 0, os.getpid()).any_saved()
