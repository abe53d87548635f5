"""A clean-up of the device is a sign of an online repair, but for one that a save of the same process follows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.checks.hygiene.exits import expected_exit
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.parameters import is_setting
from chaos.evidence.mechanisms_seen import mechanisms
from chaos.history.reader import History
from chaos.plan.parts.response import Budget, Recovery, Response
from tests.kit.plans import plan_with


class Calls:
    """A history of calls of handlers: name, rank, process."""

    def __init__(self, *calls: tuple[str, int, int]) -> None:
        self._calls = [
            SimpleNamespace(data={"name": name}, rank=rank, pid=pid, seq=seq, attempt="train", source=f"h:{seq}")
            for seq, (name, rank, pid) in enumerate(calls, 1)
        ]

    def select(self, kind: str, **of: Any) -> list[Any]:
        if kind != "handler.enter":
            return []
        return [call for call in self._calls if all(getattr(call, key) == value for key, value in of.items())]

    def first(self, kind: str, **of: Any) -> Any:
        return self._calls[0]


def seen(*calls: tuple[str, int, int], cleans: bool = True) -> set[str]:
    logs = cast(Artifacts, SimpleNamespace(sdk_events=lambda attempt: [], signs=lambda attempt, rank: []))
    history = cast(History, Calls(*calls))
    return set(mechanisms(history, logs, "train", cleans_before_saving=cleans).evidence)


def test_a_rank_of_pytorch_cleans_before_it_saves() -> None:
    calls = (("stop", 0, 10), ("clean", 0, 10), ("save_ckpt", 0, 10), ("rename", 0, 10))
    assert seen(*calls) == {"TTP"}
    assert seen(*calls, cleans=False) == {"TTP", "online repair"}, "MindSpore's do not, unless they are told to"


@pytest.mark.parametrize(
    "calls",
    [
        (("clean", 1, 11), ("save_ckpt", 0, 10)),
        (("clean", 0, 10), ("save_ckpt", 0, 12)),
        (("clean", 0, 10), ("rollback", 0, 10), ("save_ckpt", 0, 10)),
        (("save_ckpt", 0, 10), ("clean", 0, 10)),
    ],
    ids=["another rank saves", "another process saves", "it was rolled back", "it cleans afterwards"],
)
def test_any_other_clean_up_is_a_repairs(calls: tuple[tuple[str, int, int], ...]) -> None:
    assert "online repair" in seen(*calls)


def test_the_ranks_of_pytorch_leave_with_2_behind_a_save() -> None:
    saved = Response("TTP", Budget(None, {}), "fast", (Recovery("TTP", ("kill",), 6),))
    leaves = expected_exit(plan_with(response=saved, exit_code=2), "train", None)
    assert leaves.text == "exit code 2"
    assert expected_exit(plan_with(response=saved), "train", None).text == "exit code 1"


def test_the_settings_of_an_optimizer_are_no_state() -> None:
    assert is_setting("optimizer.param_groups.0.lr") and is_setting("iteration")
    assert not is_setting("optimizer.exp_avg.0") and not is_setting("0.weight") and not is_setting("iterations")
