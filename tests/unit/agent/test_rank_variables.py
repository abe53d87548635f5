"""Below a launcher of the user's own a rank is what has a number in the variables that the launch names."""

from __future__ import annotations

import pytest

from chaos.agent.configuration import place_of
from chaos.agent.launcher.rank_variables import KNOWN, VARIABLE, place_by, without_ranks, written
from chaos.machine.job.launcher_environment import launcher_environment
from chaos.machine.job.processes import claim_of

ANY = {VARIABLE: written(KNOWN)}


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, (0, 2)),
        ({"SLURM_PROCID": "1"}, (1, None)),
        ({"RANK": "1", "PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"RANK": "1", "PMI_RANK": "2"}, None),  # of one of the two it is not known whose it is
        ({"RANK": "-1"}, None),
        ({"RANK": "x"}, None),
        ({"OTHER": "1"}, None),
    ],
)
def test_a_number_is_read_by_agent_and_harness_alike(
    environment: dict[str, str], place: tuple[int, int | None] | None
) -> None:
    given = {**ANY, **environment}
    assert place_by(given) == place
    assert claim_of(given) == (("other", None) if place is None else ("rank", place[0]))
    found = place_of(given)
    assert (found.role, found.rank, found.ranks) == (("other", None, None) if place is None else ("rank", *place))


def test_without_the_names_of_the_launch_no_such_number_counts() -> None:
    assert claim_of({"RANK": "3"}) == ("other", None)
    assert place_of({"RANK": "3", "WORLD_SIZE": "4"}).rank is None


def test_names_of_the_scenario_replace_all_others() -> None:
    named = {VARIABLE: written((("MY_RANK", "MY_SIZE"),))}
    assert place_by({**named, "RANK": "3"}) is None
    assert place_by({**named, "RANK": "3", "MY_RANK": "2", "MY_SIZE": "8"}) == (2, 8)


def test_a_wrapper_that_becomes_msrun_keeps_its_ranks_and_scheduler() -> None:
    worker = {**ANY, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1", "RANK_ID": "1", "MS_WORKER_NUM": "2"}
    assert (claim_of(worker), place_of(worker).rank) == (("rank", 1), 1)
    scheduler = {**ANY, "MS_ROLE": "MS_SCHED", "RANK_ID": "0"}
    assert (claim_of(scheduler), place_of(scheduler).rank) == (("scheduler", None), None)


def test_numbers_of_the_shell_are_not_handed_to_the_launcher() -> None:
    shell = {"RANK": "0", "WORLD_SIZE": "1", "HOME": "/root"}
    assert without_ranks(shell, ANY[VARIABLE]) == {"HOME": "/root"}
    assert "RANK" not in launcher_environment(shell, ANY, {})
    assert launcher_environment(shell, {}, {}) == {"HOME": "/root"}  # PyTorch's, under any launcher
    assert launcher_environment(shell, {**ANY, "RANK": "1"}, {})["RANK"] == "1"  # the scenario's own


def test_a_launcher_of_the_harness_names_a_process_beside_the_ranks() -> None:
    assert claim_of({**ANY, "CHAOS_ROLE": "lighthouse"}) == ("lighthouse", None)
    assert claim_of({**ANY, "CHAOS_ROLE": "rank"}) == ("other", None)
    assert claim_of({**ANY, "CHAOS_ROLE": "lighthouse", "RANK": "1"}) == ("rank", 1), "a rank is what has a number"
    assert claim_of({"CHAOS_ROLE": "lighthouse"}) == ("other", None), "only below a launcher that names its ranks"
