"""Who chooses a strategy, and what the cluster's agent is told on the way."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from chaos.rehearsal.ttp.agent_dialogue import ACTIONS, CHANGE, DUMP, STOP, WHO, AgentDialogue
from chaos.rehearsal.ttp.choice import Choice
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.strategies import Possible
from chaos.rehearsal.ttp.timings import PROFILES

ALL = Possible(dump=True, retry=True, recover=True)


class Agent:
    """An agent that answers from inside each call, except to what it is told to leave out."""

    def __init__(self, strategy: str, *, silent_on: str = "", more: dict[int, int] | None = None) -> None:
        self.heard: list[tuple[str, tuple[Any, ...]]] = []
        self.dialogue = AgentDialogue()
        self.dialogue.listen(lambda rank: rank in range(4))
        self._strategy, self._silent_on, self._more = strategy, silent_on, more or {}
        for action in ACTIONS:
            self.dialogue.register(action, lambda *arguments, action=action: self._hear(action, *arguments))

    def _hear(self, action: str, *arguments: Any) -> int:
        self.heard.append((action, arguments))
        if action == self._silent_on:
            return 0
        if action == "report_fault_ranks":
            self.dialogue.notify("stop_train", arguments[0])
        elif action == "report_stop_complete" or (action == "report_result" and arguments[0] == 405):
            self.dialogue.notify("on_global_rank", {**arguments[2], **self._more})
        else:
            self.dialogue.notify("change_strategy", self._strategy)
        return 0


def choice(dialogue: AgentDialogue) -> Choice:
    return Choice(dialogue, dataclasses.replace(PROFILES["fast"], agent_answer=0.05), TtpLog(None))


def test_the_agent_chooses_among_what_is_possible_in_the_order_of_the_dialogue() -> None:
    agent = Agent("recover")
    assert choice(agent.dialogue).first({2: 1}, lambda: ALL) == "recover"
    assert agent.heard == [
        ("report_fault_ranks", ({2: 1},)),
        ("report_stop_complete", (0, "stop ok", {2: 1})),
        ("report_strategies", ({2: 1}, ["exit", "dump", "retry", "recover"])),
    ]


def test_the_agent_adds_ranks_that_are_faulty_elsewhere_before_it_is_offered_strategies() -> None:
    agent, faults = Agent("dump", more={3: 1}), {2: 1}
    seen: list[dict[int, int]] = []

    def possible() -> Possible:
        seen.append(dict(faults))
        return ALL

    choice(agent.dialogue).first(faults, possible)
    assert faults == {2: 1, 3: 1}
    assert seen == [{2: 1, 3: 1}]


@pytest.mark.parametrize("silent_on", ["report_fault_ranks", "report_stop_complete", "report_strategies"])
def test_an_agent_that_does_not_answer_gets_nothing_repaired_and_nothing_saved(silent_on: str) -> None:
    agent = Agent("recover", silent_on=silent_on)
    assert choice(agent.dialogue).first({2: 1}, lambda: ALL) == "exit"


def test_a_strategy_that_was_not_offered_is_not_followed_and_the_agent_is_told() -> None:
    agent = Agent("recover")
    assert choice(agent.dialogue).first({2: 1}, lambda: Possible(True, False, False)) == "exit"
    assert agent.heard[-1] == ("report_result", (499, "invalid strategy", {2: 1}, ""))


def test_an_order_is_refused_only_where_no_controller_listens() -> None:
    dialogue = AgentDialogue()
    assert dialogue.notify(CHANGE, "recover") == 1
    dialogue.listen(lambda rank: True)
    assert dialogue.notify(CHANGE, "recover") == 0
    dialogue.close()
    assert dialogue.notify(CHANGE, "recover") == 1


@pytest.mark.parametrize("ranks", [{4: 1}, {-1: 1}, {2: 3}, {2: -1}])
def test_an_order_that_names_what_there_is_not_is_refused(ranks: dict[int, int]) -> None:
    agent = Agent("recover")
    assert [agent.dialogue.notify(order, ranks) for order in (STOP, WHO)] == [1, 1]
    assert choice(agent.dialogue).ordered() is None


@pytest.mark.parametrize(("order", "value", "told"), [(STOP, {2: 1}, {2: 1}), (DUMP, None, {})])
def test_an_order_that_nobody_asked_for_is_kept_until_training_goes_on(
    order: str, value: Any, told: dict[int, int]
) -> None:
    agent = Agent("dump")
    one = choice(agent.dialogue)
    assert one.ordered() is None
    assert agent.dialogue.notify(order, value) == 0
    assert one.ordered() == (order, told)
    one.training()
    assert one.ordered() is None


def test_an_order_to_stop_that_came_first_is_the_answer_when_it_is_asked_for() -> None:
    agent = Agent("dump", silent_on="report_fault_ranks")
    agent.dialogue.notify(STOP, {2: 1})
    assert choice(agent.dialogue).first({2: 1}, lambda: ALL) == "dump"


def test_an_order_to_dump_is_obeyed_where_a_stop_is_awaited() -> None:
    agent = Agent("recover", silent_on="report_fault_ranks")
    agent.dialogue.notify(DUMP, None)
    assert choice(agent.dialogue).first({2: 1}, lambda: ALL) == "dump"
    assert [name for name, _ in agent.heard] == ["report_fault_ranks"]


@pytest.mark.parametrize("waiting", ["report_stop_complete", "report_strategies"])
def test_an_order_to_dump_is_no_answer_to_another_question(waiting: str) -> None:
    """The vendor's controller exits without a checkpoint."""
    agent = Agent("dump", silent_on=waiting)
    agent.dialogue.register(waiting, lambda *_: agent.dialogue.notify(DUMP, None))
    assert choice(agent.dialogue).first({2: 1}, lambda: ALL) == "exit"


@pytest.mark.parametrize(("strategy", "end"), [("dump", "dump"), ("exit", "exit"), ("recover", None)])
def test_another_end_may_be_ordered_while_nobody_asks(strategy: str, end: str | None) -> None:
    agent = Agent("recover")
    agent.dialogue.notify(CHANGE, strategy)
    assert choice(agent.dialogue).ordered_to_end() == end


@pytest.mark.parametrize(("action", "function"), [("report_weather", print), ("report_result", "no function")])
def test_what_cannot_be_registered_is_refused(action: str, function: Any) -> None:
    assert AgentDialogue().register(action, function) == 1


@pytest.mark.parametrize(
    ("possible", "code", "next_strategy"),
    [
        (Possible(True, False, False), 406, "dump"),
        (Possible(False, False, False), 499, "exit"),
    ],
)
def test_a_failure_is_reported_with_what_is_still_allowed(possible: Possible, code: int, next_strategy: str) -> None:
    agent = Agent(next_strategy)
    assert choice(agent.dialogue).next("retry", "clean failed", possible, {1: 0}, lambda: ALL) == next_strategy
    assert agent.heard == [("report_result", (code, "clean failed", {}, "retry"))]


def test_where_a_replacement_may_follow_the_agent_is_asked_who_is_faulty_and_offered_anew() -> None:
    agent, faults = Agent("recover"), {1: 1}
    offered = Possible(True, False, True)
    following = choice(agent.dialogue).next(
        "retry", "clean failed", Possible(False, False, True), faults, lambda: offered
    )
    assert following == "recover"
    assert agent.heard == [
        ("report_result", (405, "clean failed", {1: 1}, "retry")),
        ("report_strategies", ({1: 1}, ["exit", "dump", "recover"])),
    ]


def test_an_agent_that_does_not_say_again_who_is_faulty_gets_nothing_replaced() -> None:
    agent = Agent("recover", silent_on="report_result")
    possible = Possible(False, False, True)
    assert choice(agent.dialogue).next("retry", "clean failed", possible, {1: 1}, lambda: possible) == "exit"


@pytest.mark.parametrize(("saved", "code"), [(True, 0), (False, 499)])
def test_the_agent_is_told_whether_there_is_a_checkpoint_and_the_faults_of_the_beginning(
    saved: bool, code: int
) -> None:
    agent, faults = Agent("dump"), {2: 1}
    one = choice(agent.dialogue)
    one.first(faults, lambda: ALL)
    faults[3] = 1
    one.dumped(saved)
    answer = agent.heard[-1]
    assert (answer[0], answer[1][0], answer[1][2:]) == ("report_result", code, ({2: 1}, "dump"))


@pytest.mark.parametrize(
    ("possible", "strategy"),
    [(ALL, "retry"), (Possible(True, False, True), "dump"), (Possible(False, False, True), "exit")],
)
def test_without_an_agent_the_controller_decides_and_replaces_nobody(possible: Possible, strategy: str) -> None:
    alone = choice(AgentDialogue())
    assert alone.first({2: 1}, lambda: possible) == strategy
    assert alone.next("retry", "", possible, {2: 1}, lambda: possible) == strategy


def test_a_part_of_an_agent_is_none() -> None:
    dialogue = AgentDialogue()
    for action in ACTIONS[:3]:
        dialogue.register(action, lambda *_: 0)
        assert not dialogue.registered
