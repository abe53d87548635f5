"""The mechanisms as objects: each is declared once, in its package, and found by the entry points of one group.

A table by mechanism is made of the objects (:class:`Facts`, :class:`Names`), so that nothing outside a package names
its mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from chaos.scenario.models.mechanisms import registered

if TYPE_CHECKING:
    from chaos.plan.budgets import Profile
    from chaos.plan.parts.fault import PlannedFault
    from chaos.plan.problems import Problems
    from chaos.plan.recovery.incident import Incident
    from chaos.plan.recovery.response import Answer, Context
    from chaos.plan.schedule import Scheduled
    from chaos.plan.traits import JobTraits
    from chaos.scenario.models.scenario import Scenario

_Fact = TypeVar("_Fact")


@dataclass(frozen=True, kw_only=True)
class Signs:
    """The signs that a mechanism leaves behind when it acts; several mechanisms may share theirs.

    Args:
        name: the name of the actor in findings.
        handlers: handlers that no other mechanism calls. ``stop`` and ``exit`` belong to every one.
        lines: kinds of lines in the SDK's log.
        states: states of its controller.
        repairs: words for a repair that it begins; with ``any_repair`` also words that belong to no other mechanism.
        ranks: kinds of lines in the ranks' logs, and the statement of each.
        also: names of other signs that it leaves too.
    """

    name: str
    handlers: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    repairs: frozenset[str] = frozenset()
    any_repair: bool = False
    ranks: Mapping[str, str] = field(default_factory=dict)
    also: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A mechanism as the plan, and every reader of the plan, knows it.

    Args:
        name: its name in scenarios and, unless the launcher acts, in MS_ENABLE_TFT.
        listed: its place in lists for a reader.
        order: its place in the order in which mechanisms are asked; the last one always answers.
        answer: its answer to an incident; None where the next mechanism is to be asked.
        phases: the phases of its recovery, in order.
        budgets: its budgets by timing profile.
        longer: by how many seconds the faults that its last recovery answers make phases longer in a scenario.
        needs: why it has a need of the vendor's table of constraints and dependencies, by need.
        safeguarded: whether it switches the end-of-life checkpoint on, as its last safeguard.
        check: notes what it forbids, and faults that it cannot answer, whatever else is on.
        repairs: classes of errors that it answers while every process lives on, and the results that it notices by
            itself.
        repairs_with: further mechanisms with which it answers them.
        repairs_if: whether it answers such a fault in this scenario.
        in_place: whether it repairs ranks whose processes live on, and saves nothing.
        in_step: whether the optimizer's wrapper sums a flag over all ranks before each update because of it.
        pauses: whether it holds the training back and lets it go on, without losing anything.
        saves: whether it leaves an end-of-life checkpoint.
        ends_launch: whether the launch ends with it, so that training goes on when the job is started again.
        of_launcher: whether the job's launcher acts, and neither the framework nor the SDK has a part in it.
        starts_ranks: whether it starts lost ranks again within the launch.
        restarts_all: whether it starts all ranks again, whatever the other ranks have seen of the fault.
        meets_damage: whether it is planned, too, when a fault has damaged the checkpoint that it starts all ranks from.
        rejoins: whether lost ranks come back at a later step, while the others train on without them; then training is
            another than the fault-free one.
        names_cause: whether its actor names, at each restart, the process whose failure it takes for the root cause.
        by_survivors: whether it acts, too, when another rank ends because of an error in a collective.
        cut_off: why it is not planned together with nodes that are cut off.
        only_one: whether MindSpore takes it for the only mechanism where none is on that saves a state.
        rolls_back: whether it takes every rank back to a periodic checkpoint, in its own process.
        no_whole_graph: whether MindSpore refuses it where a graph is sunk as a whole (jit level O2).
        since: the first MindFormers whose ``version_control.py`` looks for its switch; None where none does.
        other_states: states of its switch that are not planned, and what each means.
        switched_by: strategies by which MindCluster switches it on in a job of MindSpore.
        strategy: the SDK's name for it when it talks to the cluster's agent.
        operations: the orders of the SDK's controller to the ranks in its recovery, as its log names them.
        signs: the signs that it leaves; None where neither a handler nor a log shows it.
        recipes: the place of its recipes for random scenarios: ``package.module:OBJECT``.
        drawn_errors: kinds of faults that such a scenario raises for it.
        rule: the place of its rule, to be imported when a run is judged: ``package.module:OBJECT``.
    """

    name: str
    listed: int
    order: int
    answer: Callable[[Context, Incident], Answer | None]
    phases: tuple[str, ...]
    budgets: Mapping[str, Profile]
    longer: Callable[[Scenario, Sequence[Scheduled]], Mapping[str, float]] | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    safeguarded: bool = False
    check: Callable[[Scenario, Sequence[Scheduled], JobTraits, Problems], None] | None = None
    repairs: frozenset[str] = frozenset()
    repairs_with: tuple[str, ...] = ()
    repairs_if: Callable[[Scenario, PlannedFault], bool] | None = None
    in_place: bool = False
    in_step: bool = False
    pauses: bool = False
    saves: bool = False
    ends_launch: bool = False
    of_launcher: bool = False
    starts_ranks: bool = False
    restarts_all: bool = False
    meets_damage: bool = False
    rejoins: bool = False
    names_cause: bool = False
    by_survivors: bool = False
    cut_off: str | None = None
    only_one: bool = False
    rolls_back: bool = False
    no_whole_graph: bool = False
    since: tuple[int, int] | None = None
    other_states: Mapping[str, str] = field(default_factory=dict)
    switched_by: tuple[str, ...] = ()
    strategy: str | None = None
    operations: frozenset[str] = frozenset()
    signs: Signs | None = None
    recipes: tuple[str, ...] = ()
    drawn_errors: tuple[str, ...] = ()
    rule: str

    def is_on(self, on: Iterable[str]) -> bool:
        """Return whether it answers faults while the mechanisms ``on`` are on."""
        return not {self.name, *self.repairs_with}.isdisjoint(on)


@cache
def mechanisms() -> Mapping[str, Mechanism]:
    """Return every registered mechanism by its name, in the order of lists for a reader."""
    return MappingProxyType({mechanism.name: mechanism for mechanism in cast("tuple[Mechanism, ...]", registered())})


@cache
def in_order() -> tuple[Mechanism, ...]:
    """Return every registered mechanism in the order in which they are asked; the last one always answers."""
    return tuple(sorted(mechanisms().values(), key=lambda mechanism: mechanism.order))


class Facts(Mapping[str, _Fact], Generic[_Fact]):
    """A fact of every mechanism that has it, by the mechanism's name. The registry is asked at the first use."""

    def __init__(self, fact: Callable[[Mechanism], _Fact | None]) -> None:
        self._fact = fact

    @cached_property
    def _known(self) -> dict[str, _Fact]:
        facts = {name: self._fact(mechanism) for name, mechanism in mechanisms().items()}
        return {name: fact for name, fact in facts.items() if fact is not None}

    def __getitem__(self, name: str) -> _Fact:
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Names(Set[str]):
    """The names of the mechanisms that pass a test. The registry is asked at the first use."""

    def __init__(self, holds: Callable[[Mechanism], bool]) -> None:
        self._holds = holds

    @classmethod
    def _from_iterable(cls, names: Iterable[str]) -> frozenset[str]:  # type: ignore[override]  # of |, & and -
        return frozenset(names)

    @cached_property
    def _known(self) -> dict[str, None]:
        return {name: None for name, mechanism in mechanisms().items() if self._holds(mechanism)}

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __str__(self) -> str:
        return ", ".join(self)
