"""A rank of torchrun is what has torchrun's run id, a local rank and a number, to the agent and the harness alike."""

from __future__ import annotations

import pytest

from chaos.agent.configuration import Place, place_of
from chaos.agent.launcher.rank_variables import KNOWN, VARIABLE, written
from chaos.agent.launcher.torchrun import VARIABLES
from chaos.machine.job.launcher_environment import launcher_environment
from chaos.machine.job.processes import claim_of, running_claim

RANK = {
    "RANK": "3",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
}


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in RANK.items() if key != name}


@pytest.mark.parametrize(
    ("environment", "rank", "ranks"),
    [
        (RANK, 3, 4),
        ({**RANK, "TORCHELASTIC_RESTART_COUNT": "2"}, 3, 4),  # it numbers nothing
        ({**RANK, "TORCHELASTIC_RUN_ID": ""}, 3, 4),
        ({**RANK, "WORLD_SIZE": "x"}, 3, None),
        (without("WORLD_SIZE"), 3, None),
        ({**RANK, "RANK_ID": "7", "RANK_SIZE": "8"}, 3, 4),  # of the shell that torchrun was called from
    ],
)
def test_a_rank_of_torchrun_has_its_number(environment: dict[str, str], rank: int, ranks: int | None) -> None:
    assert place_of(environment) == Place("rank", rank, ranks)
    assert claim_of(environment) == running_claim(environment) == ("rank", rank)


@pytest.mark.parametrize(
    "environment",
    [
        without("TORCHELASTIC_RUN_ID"),
        without("LOCAL_RANK"),
        without("RANK"),
        {**RANK, "RANK": "-1"},
        {**RANK, "RANK": "³"},
        {**RANK, "LOCAL_RANK": "0,1"},
        # A pod of PyTorch by the Ascend Operator: RANK is the number of the node.
        {"RANK": "1", "LOCAL_RANK": "0,1", "WORLD_SIZE": "4", "MASTER_ADDR": "master-0", "MASTER_PORT": "2222"},
        {"RANK": "1", "WORLD_SIZE": "4"},
    ],
)
def test_a_number_without_the_rest_makes_no_rank(environment: dict[str, str]) -> None:
    assert place_of(environment).rank is None
    assert claim_of(environment) == running_claim(environment) == ("other", None)


def test_ranks_of_mindspore_below_torchrun_have_the_number_that_msrun_would_give() -> None:
    both = {**RANK, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": "2", "MS_WORKER_NUM": "8"}
    assert (place_of(both), claim_of(both)) == (Place("rank", 2, 8), ("rank", 2))
    assert running_claim(both) == ("rank", 2)
    assert running_claim(both, below_torchrun=True) == ("rank", 3)  # torchrun was started by such a rank


def test_the_variables_that_a_launch_names_count_for_more() -> None:
    named = {**RANK, VARIABLE: written((("MY_RANK", "MY_SIZE"),)), "MY_RANK": "0", "MY_SIZE": "4"}
    assert (place_of(named), claim_of(named)) == (Place("rank", 0, 4), ("rank", 0))
    assert claim_of({**RANK, VARIABLE: written(KNOWN)}) == ("rank", 3)


def test_a_rank_of_the_shell_reaches_no_launcher() -> None:
    shell = {**RANK, "HIGH_AVAILABILITY": "dump", "PROCESS_RECOVER": "on", "TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
    kept = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}  # a setting of torchrun's user
    assert launcher_environment(shell, {}, {}) == kept
    assert launcher_environment(shell, {"MASTER_PORT": "1"}, {}) == {**kept, "MASTER_PORT": "1"}
    assert RANK.keys() <= VARIABLES
