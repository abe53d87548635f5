"""What MindSpeed-LLM's arguments and HIGH_AVAILABILITY switch on, each alone and together."""

from __future__ import annotations

import pytest

from chaos.jobs.mindspeed.arguments import Arguments
from chaos.jobs.mindspeed.switches import misread, switches_of
from tests.unit.jobs.mindspeed.conftest import MindSpeedScenario

HA = "--enable-high-availability"


@pytest.mark.parametrize(
    ("arguments", "variable", "on"),
    [
        ((HA,), None, {"TTP"}),
        ((HA, "--enable-hbmfault-repair"), None, {"TTP", "UCE", "HCCE"}),
        ((HA, "--enable-worker-reboot"), None, {"TTP", "ARF"}),
        ((HA, "--enable-elastic-training"), None, {"TTP"}),
        ((), "dump", {"TTP"}),
        ((), "retry", {"TTP", "UCE", "HCCE"}),
        ((), "recover", {"TTP", "ARF"}),
        ((), "elastic-training", {"TTP"}),
        ((), "Recover,RETRY", {"TTP", "UCE", "HCCE", "ARF"}),
        ((HA, "--enable-hbmfault-repair"), "recover", {"TTP", "UCE", "HCCE", "ARF"}),
        (("--enable-worker-reboot",), "dump", {"TTP", "ARF"}),
        (("--enable-worker-reboot",), None, set()),
        ((), "TTP", set()),
        ((), None, set()),
    ],
)
def test_the_variable_adds_to_the_arguments(arguments: tuple[str, ...], variable: str | None, on: set[str]) -> None:
    assert set(switches_of(Arguments(arguments), variable).mechanisms) == on


@pytest.mark.parametrize(
    ("strategies", "on"),
    [(("dump",), {"TTP"}), (("exit",), {"TTP", "ARF"}), (("recover-in-place", "retry"), {"TTP", "UCE", "HCCE", "ARF"})],
)
def test_strategies_of_the_cluster_switch_on_what_ascend_operator_writes(
    strategies: tuple[str, ...], on: set[str]
) -> None:
    assert set(switches_of(Arguments(()), None, strategies).mechanisms) == on


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("dump, retry", "' retry' has a blank"),
        ("exit", "'exit' is a strategy of MindCluster"),
        ("retyr", "passes 'retyr' over"),
        ("dump,", "passes '' over"),
    ],
)
def test_a_word_that_is_passed_over_is_told(variable: str, said: str) -> None:
    ((message, hint),) = misread(switches_of(Arguments(()), variable))
    assert said in message
    assert hint


@pytest.mark.parametrize("variable", [None, "", "dump", "dump,RETRY,recover,elastic-training"])
def test_words_that_are_read_are_left_alone(variable: str | None) -> None:
    assert list(misread(switches_of(Arguments(()), variable))) == []


def test_the_plan_takes_the_mechanisms_from_the_arguments_and_says_where_they_stand(job: MindSpeedScenario) -> None:
    plan = job.plan(HA)
    assert plan.fault_tolerance.protection == ("TTP",)
    assert f"{job.file}:{job.line(HA)}: {HA}: TTP" in str(plan.explanation.configured["job.protection"])


def test_a_protection_that_the_arguments_contradict_is_refused(job: MindSpeedScenario) -> None:
    (problem,) = job.refused(HA, protection=["TTP", "ARF"])
    assert "job.protection is [TTP, ARF] here" in problem.message
    (problem,) = job.refused(protection=["TTP"])
    assert "leaves --enable-high-availability out, which means no mechanism is on" in problem.message
    assert job.plan(HA, protection=["TTP"]).fault_tolerance.protection == ("TTP",)


def test_steps_and_saves_are_those_of_the_arguments(job: MindSpeedScenario) -> None:
    plan = job.plan(HA)
    assert (plan.training.last_step, plan.training.checkpoint_interval) == (40, 10)
    (problem,) = job.refused(HA, steps=30)
    assert "job.steps is 30 here" in problem.message
    assert problem.line == job.line("steps: 30")


def test_an_argument_and_its_value_may_be_two_words_and_the_last_counts() -> None:
    arguments = Arguments(["--train-iters", "30", "--save", "--train-iters=40", "--swap-optimizer"])
    assert arguments.whole("--train-iters", 1) == 40
    assert (argument := arguments.get("--save")) is not None
    assert (argument.value, argument.path) == (None, "job.arguments.2")
    assert arguments.whole("--save-interval", 7) == 7
    assert arguments.first("--x", "--swap-optimizer") is not None
