"""The switches of MindSpeed-LLM's high availability: arguments of the script, and words of HIGH_AVAILABILITY.

The words are strategies of MindCluster. The variable adds to the arguments, and each of its words switches the
end-of-life checkpoint on as well; an argument does not. On a cluster Ascend Operator sets the variable by the job's
strategies.

Source: MindSpeed-LLM c77308a, ``features_manager/high_availability`` and ``high_availability_helper.get_env_args``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from chaos.jobs.mindspeed.arguments import Arguments
from chaos.scenario.errors import quote, suggest
from chaos.scenario.models.job import injected
from chaos.scenario.models.mechanisms import registered

VARIABLE = "HIGH_AVAILABILITY"
ENVIRONMENT = f"job.environment.{VARIABLE}"
NO_REPLICA = "--distributed-optimizer-no-replica"

BY_ARGUMENT: Mapping[str, str] = MappingProxyType(
    {
        "--enable-high-availability": "dump",
        "--enable-hbmfault-repair": "retry",
        "--enable-worker-reboot": "recover",
        "--enable-elastic-training": "elastic-training",
    }
)
"""Argument → word of HIGH_AVAILABILITY that does the same."""

MASTER = next(iter(BY_ARGUMENT))
"""The argument without which the others are refused, or do nothing."""

_BY_STRATEGY = {"exit": "recover", "recover-in-place": "recover"}
"""Strategy → word that Ascend Operator writes for it, where it is another."""


@dataclass(frozen=True)
class Switch:
    """A switch that is on: its word, its name for readers, and the key of the scenario that it stands at."""

    word: str
    spelled: str
    path: str


@dataclass(frozen=True)
class Switches:
    """The switches by word, the first of each. ``available`` is the one that puts high availability on, if any is."""

    by_word: Mapping[str, Switch]
    available: Switch | None
    misread: tuple[str, ...] = field(default=())

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are on: none without high availability."""
        return injected(["dump", *self.by_word]) if self.available is not None else ()

    def get(self, *words: str) -> Switch | None:
        """Return the switch of the first of these words that is on."""
        return next((self.by_word[word] for word in words if word in self.by_word), None)


def switches_of(arguments: Arguments, variable: str | None, strategies: Iterable[str] = ()) -> Switches:
    """Return what is on. ``strategies`` are those of the cluster's agent; none where there is no agent."""
    given = [
        Switch(word, argument.name, argument.path)
        for name, word in BY_ARGUMENT.items()
        if (argument := arguments.get(name)) is not None
    ]
    added = [
        Switch(word.lower(), f"{VARIABLE}={word}", ENVIRONMENT)
        for word in (variable or "").split(",")
        if word.lower() in BY_ARGUMENT.values()
    ]
    allowed = [
        Switch(_BY_STRATEGY.get(strategy, strategy), f"strategy {strategy}", "job.strategies")
        for strategy in strategies
    ]
    by_word: dict[str, Switch] = {}
    for switch in (*given, *added, *allowed):
        by_word.setdefault(switch.word, switch)
    master = [switch for switch in given if switch.spelled == MASTER]
    return Switches(by_word, next(iter([*master, *added, *allowed]), None), _misread(variable))


def takes() -> frozenset[str]:
    """Return the mechanisms that a job of MindSpeed-LLM can have: its own, and those of torchrun."""
    own = injected(BY_ARGUMENT.values())
    return frozenset({*own, *(mechanism.name for mechanism in registered() if mechanism.of_launcher)})


def _misread(variable: str | None) -> tuple[str, ...]:
    return tuple(word for word in (variable or "").split(",") if variable and word.lower() not in BY_ARGUMENT.values())


def misread(switches: Switches) -> Iterator[tuple[str, str]]:
    """Yield a message and a hint for each word of the variable that MindSpeed-LLM passes over."""
    for word in switches.misread:
        if word.strip().lower() in BY_ARGUMENT.values():
            message = f"{VARIABLE}: {quote(word)} has a blank: MindSpeed-LLM splits at commas, strips nothing and "
            yield f"{message}passes it over", "write the words with commas and no blanks"
        elif word in _BY_STRATEGY:
            message = f"{VARIABLE}: {quote(word)} is a strategy of MindCluster, and MindSpeed-LLM passes it over"
            yield message, f"write {_BY_STRATEGY[word]}, as Ascend Operator does"
        else:
            message = f"{VARIABLE}: MindSpeed-LLM passes {quote(word)} over"
            yield message, suggest(word, BY_ARGUMENT.values(), "words")
