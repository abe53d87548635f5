"""A checkpoint of several networks is compared network by network, whatever a script calls them in its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.evidence.checkpoints.several_networks import is_of_another_network
from chaos.evidence.checkpoints.sharded import as_held
from chaos.evidence.checkpoints.whole import lacking, unequal
from chaos.observe.checkpoints.layout import CheckpointFile
from chaos.observe.checkpoints.saved_state import SavedState

HELD = {
    "net.0.weight": "maker's",
    "net.1.running_mean": "maker's mean",
    "network2.net.0.weight": "judge's",
    "network2.net.1.running_mean": "judge's mean",
    "optimizer.exp_avg.0": "judge's moment",
    "optimizer2.exp_avg.0": "maker's moment",
}
FILE = {
    "judge.net.0.weight": "judge's",
    "judge.net.1.running_mean": "judge's mean",
    "maker.module.net.0.weight": "maker's",
    "maker.module.net.1.running_mean": "maker's mean",
    "optimizer.exp_avg.0": "maker's moment",
    "optimizer2.exp_avg.0": "judge's moment",
    "making.param_groups.0.lr": "rate",
}

WHERE = CheckpointFile(
    Path("x.pt"), 0, epoch=None, step_in_epoch=None, directory_step=None, temporary=False, kind="either", name_rank=None
)


def state(digests: dict[str, str]) -> SavedState:
    return SavedState(digests, (), {})


def differing(digests: dict[str, str], held: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return the rank's names whose values differ from the file's, and those that the file lacks."""
    mine = as_held(state(digests), 0, held)
    return unequal(mine, held)[1], lacking(WHERE, mine, held)


def test_names_and_their_order_are_the_scripts_own_affair() -> None:
    mine = as_held(state(FILE), 0, HELD)
    assert {name: mine.digests[name] for name in HELD} == HELD
    assert mine.digests.keys() - HELD.keys() == {"making.param_groups.0.lr"}


@pytest.mark.parametrize("stripped", ["judge.", "maker.module."])
def test_the_network_whose_key_a_reader_leaves_out_may_be_either(stripped: str) -> None:
    digests = {name.removeprefix(stripped): digest for name, digest in FILE.items()}
    assert differing(digests, HELD) == ([], [])


@pytest.mark.parametrize("lost", ["net.0.weight", "network2.net.0.weight", "optimizer.exp_avg.0"])
def test_a_value_that_is_another_differs_under_its_own_name(lost: str) -> None:
    assert differing(FILE, {**HELD, lost: "begun anew"}) == ([lost], [])


def test_a_network_that_was_begun_anew_differs_and_the_other_does_not() -> None:
    anew = {name: f"new {digest}" for name, digest in HELD.items() if is_of_another_network(name)}
    assert differing(FILE, {**HELD, **anew}) == (sorted(anew), [])


def test_two_networks_that_a_rank_has_taken_for_each_other_differ() -> None:
    swapped = {
        name: HELD[name.removeprefix("network2.") if is_of_another_network(name) else f"network2.{name}"]
        for name in HELD
        if not name.startswith("optimizer")
    }
    held = {**HELD, **swapped}
    mine = as_held(state(FILE), 0, held, HELD)
    assert unequal(mine, held)[1] == sorted(swapped)


def test_a_file_without_the_second_network_lacks_it() -> None:
    digests = {name: digest for name, digest in FILE.items() if not name.startswith("judge.")}
    assert differing(digests, HELD)[1] == ["network2.net.0.weight", "network2.net.1.running_mean"]


def test_a_value_under_a_name_of_the_scripts_own_is_known_by_its_digest() -> None:
    digests = {**FILE, "temperature": "warm"}
    assert differing(digests, {**HELD, "network3.alpha": "warm"}) == ([], [])
    assert differing(digests, {**HELD, "network3.alpha": "cold"}) == ([], ["network3.alpha"])


def test_of_a_weight_of_no_module_no_file_is_asked() -> None:
    """An optimizer may make a copy of each weight, and make it anew after a restart."""
    assert differing(FILE, {**HELD, "optimizer3.parameter.0": "copy"}) == ([], [])
    mine = as_held(state({**FILE, "log_alpha": "copy"}), 0, {**HELD, "optimizer3.parameter.0": "copy"})
    assert mine.digests["optimizer3.parameter.0"] == "copy"


def test_two_optimizers_of_one_model_go_by_their_weights() -> None:
    held = {"a": "1", "b": "2", "optimizer.momentum_buffer.0": "m", "optimizer2.exp_avg.0": "e"}
    digests = {"a": "1", "b": "2", "optimizer.exp_avg.0": "e", "optimizer2.momentum_buffer.0": "m"}
    assert differing(digests, held) == ([], [])


def test_a_job_with_one_network_keeps_the_names_of_its_file() -> None:
    whole = state({"a": "1", "ema.a": "2", "optimizer.exp_avg.0": "e"})
    assert as_held(whole, 0, {"a": "1", "optimizer.exp_avg.0": "e"}) is whole


def test_parts_and_values_that_are_not_finite_go_by_the_new_names_too() -> None:
    shards = {"judge.net.0.weight": {0: "upper", 1: "lower"}}
    whole = SavedState(FILE, ("judge.net.0.weight",), {}, shards=shards)
    mine = as_held(whole, 1, {**HELD, "network2.net.0.weight": "lower"})
    assert mine.infinite == ("network2.net.0.weight",)
    assert mine.digests["network2.net.0.weight"] == "lower"


WRAPPED = {"wrap.inner.0.weight": "w", "wrap.inner.0.bias": "b", "optimizer.exp_avg.0": "m"}
WITHIN = {"0.weight": "w", "0.bias": "b", "optimizer.exp_avg.0": "m", "step": "s"}


def test_a_file_may_hold_the_model_within_its_wrapper() -> None:
    mine = as_held(state(WITHIN), 0, WRAPPED)
    assert mine.digests == {**WRAPPED, "step": "s"}
    assert differing(WITHIN, WRAPPED) == ([], [])


@pytest.mark.parametrize("name", WRAPPED)
def test_a_value_of_a_wrapped_model_that_is_another_differs(name: str) -> None:
    assert differing(WITHIN, {**WRAPPED, name: "begun anew"}) == ([name], [])


@pytest.mark.parametrize("name", [name for name in WITHIN if name != "step"])
def test_a_file_that_lacks_a_value_of_a_wrapped_model_is_seen(name: str) -> None:
    _, lacks = differing({held: digest for held, digest in WITHIN.items() if held != name}, WRAPPED)
    assert {lost for lost in WRAPPED if lost.endswith(name)} <= set(lacks)


def test_weights_that_share_no_beginning_have_no_wrapper() -> None:
    held = {"encoder.0.weight": "w", "decoder.0.bias": "b"}
    assert differing({"0.weight": "w", "0.bias": "b"}, held) == ([], sorted(held))
