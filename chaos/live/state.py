"""The state of a run at one moment, as a page or a terminal shows it. Data only.

Times are seconds of the epoch (``since``, ``started``) or lengths in seconds. Texts that come from a job or its files
are free of control characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from chaos.live.words import stage_words

LETTERS: Mapping[str, str] = MappingProxyType(
    {
        "not started": ".",
        "starting": "s",
        "loading": "L",
        "training": "=",
        "held": "H",
        "faulted": "F",
        "stopped": "T",
        "saving": "S",
        "repairing": "R",
        "trained": "d",
        "ended": "e",
        "ended by fault": "x",
        "ended unplanned": "X",
        "not recorded": "?",
    }
)
"""The states of a rank, each with the letter that stands for it in a strip: colour is never the only sign."""

STATES = tuple(LETTERS)


@dataclass(frozen=True)
class Waiting:
    """The condition that the harness waits for. ``missing`` says what is not there yet."""

    name: str
    goal: str
    since: float
    elapsed: float
    limit: float
    missing: str = ""

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return max(0.0, self.limit - self.elapsed)


@dataclass(frozen=True)
class FaultState:
    """A planned fault.

    ``state`` is planned, armed, acting, landed, missed or undone, since ``since``. ``step`` and ``phase`` are where it
    landed. ``text`` is why it was missed, or how it was undone.
    """

    id: str
    kind: str
    ranks: tuple[int, ...]
    role: str | None
    state: str
    waits_for: str
    step: int | None = None
    phase: str | None = None
    since: float | None = None
    elapsed: float | None = None
    text: str = ""


@dataclass(frozen=True)
class PhaseState:
    """A phase of a recovery. ``seconds`` is None where its length is not known.

    ``state`` is ended, now or later; missing in a run that has ended without it.
    """

    name: str
    state: str
    seconds: float | None
    budget: float | None

    @property
    def over(self) -> bool:
        """Whether it takes longer than its budget."""
        return None not in (self.seconds, self.budget) and (self.seconds or 0.0) > (self.budget or 0.0)


@dataclass(frozen=True)
class RecoveryState:
    """The latest recovery that a fault has called for: ``number`` of ``of``."""

    mechanism: str
    number: int
    of: int
    elapsed: float
    budget: float | None
    ended: bool
    phases: tuple[PhaseState, ...]

    @property
    def phase(self) -> PhaseState | None:
        """The phase of this moment."""
        return next((phase for phase in self.phases if phase.state == "now"), None)

    @property
    def over(self) -> bool:
        """Whether it takes longer than its budget."""
        return self.budget is not None and self.elapsed > self.budget


@dataclass(frozen=True)
class LossState:
    """The last loss of a rank beside the loss of the fault-free run at that step.

    ``by_log``: its agent has recorded none, so both are those of the ranks' logs.
    """

    rank: int
    step: int
    loss: float
    baseline: float | None
    by_log: bool = False

    @property
    def difference(self) -> float | None:
        """The loss less that of the fault-free run."""
        return None if self.baseline is None else self.loss - self.baseline


@dataclass(frozen=True)
class EndState:
    """The end of a rank's latest process. ``planned`` is None where it cannot be said."""

    how: str
    planned: bool | None


@dataclass(frozen=True)
class RankState:
    """A rank in the present launch. ``step`` is the last step that it has begun."""

    rank: int
    node: int
    group: int | None
    attempt: str
    state: str
    pid: int | None = None
    processes: int = 0
    step: int | None = None
    detail: str = ""
    since: float | None = None
    loss: float | None = None
    end: EndState | None = None


@dataclass(frozen=True)
class GroupState:
    """Ranks that are shown together: those of a node, of a replica group, or neighbours."""

    name: str
    kind: str
    ranks: str
    count: int
    states: Mapping[str, int]


@dataclass(frozen=True)
class Ends:
    """Processes of ranks that have ended, in all launches of the run. An end of unknown cause is not counted."""

    planned: int = 0
    unplanned: int = 0


@dataclass(frozen=True)
class CoreHolder:
    """A process that holds cores which a run waits for."""

    cores: str
    pid: int
    user: str
    since: float
    run: str
    command: str


@dataclass(frozen=True)
class CoresWait:
    """A harness that waits for a processor core, and has no run yet. ``limit`` is None where it is not recorded."""

    pid: int
    since: float
    elapsed: float
    limit: float | None
    holders: tuple[CoreHolder, ...] = ()


@dataclass(frozen=True)
class BaselineMaker:
    """The process that makes the fault-free run which a run waits for. ``run`` is its run, empty before it has one."""

    pid: int
    user: str
    since: float
    elapsed: float
    run: str


@dataclass(frozen=True)
class LiveState:
    """A run at the moment ``now``. :func:`chaos.live.json_form.as_json` explains the fields."""

    run: str
    directory: str
    now: float
    scenario: str = ""
    cell: str = ""
    cell_number: int | None = None
    cell_count: int | None = None
    baseline_of: bool = False
    alive: bool | None = None
    stage: str = "preparing"
    started: float | None = None
    elapsed: float | None = None
    limit: float | None = None
    verdict: str | None = None
    step: int | None = None
    steps: int | None = None
    waiting: Waiting | None = None
    baseline_maker: BaselineMaker | None = None
    faults: tuple[FaultState, ...] = ()
    recovery: RecoveryState | None = None
    loss: LossState | None = None
    ranks: tuple[RankState, ...] = ()
    groups: tuple[GroupState, ...] = ()
    ends: Ends = Ends()
    cores: tuple[int, ...] = ()
    holders: tuple[CoreHolder, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def stage_words(self) -> str:
        """The stage in words, with the verdict once there is one."""
        return stage_words(self.stage, self.verdict, fault_free=self.baseline_of)

    @property
    def states(self) -> dict[str, int]:
        """The number of ranks in each state, in the order of STATES."""
        counts = dict.fromkeys(STATES, 0)
        for rank in self.ranks:
            counts[rank.state] += 1
        return {state: count for state, count in counts.items() if count}
