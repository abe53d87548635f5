"""A rank that has read another rank's checkpoint goes on with that rank's running statistics, and with nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from chaos.checks.resume.replayed import without_statistics_of_others

PLAN: Any = SimpleNamespace(layout=SimpleNamespace(replica_groups=((0, 1), (2,))))
HELD = {rank: {"w": f"w of {rank}", "norm.running_mean": f"mean of {rank}"} for rank in range(3)}
BASELINE: Any = SimpleNamespace(
    digests={rank: {4: SimpleNamespace(data={"parameters": held})} for rank, held in HELD.items()}
)


def window(*, reads: bool) -> Any:
    return SimpleNamespace(step=4, recovery=SimpleNamespace(reads_checkpoint=reads))


@pytest.mark.parametrize(
    ("ours", "reads", "left"),
    [
        (HELD[0], True, ["w"]),
        (HELD[0], False, ["norm.running_mean", "w"]),
        (HELD[2], True, ["norm.running_mean", "w"]),
        ({"w": "other", "norm.running_mean": "begun anew"}, True, ["norm.running_mean", "w"]),
    ],
)
def test_only_statistics_of_the_replica_group_are_accepted(ours: dict[str, str], reads: bool, left: list[str]) -> None:
    names = ["norm.running_mean", "w"]
    assert without_statistics_of_others(PLAN, BASELINE, window(reads=reads), 1, ours, names) == left
