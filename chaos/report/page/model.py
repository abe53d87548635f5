"""The data of a run's page, as the script in the page reads them (docs/guides/report.md describes the sections).

Times are seconds since the start of the run. None stands for what is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.evidence.finding import Verdict

FILE = "report.html"
"""The page in the directory of its run."""


@dataclass(frozen=True)
class Headline:
    """The verdict in a sentence, and how many statements have which verdict."""

    word: Verdict
    sentence: str
    passed: int
    failed: int
    unknown: int


@dataclass(frozen=True)
class Place:
    """A place where a statement can be looked up. ``excerpt`` is the key of its lines in the page."""

    text: str
    excerpt: str | None


@dataclass(frozen=True)
class Statement:
    """One statement of a check. ``line`` is the line of the scenario that it follows from.

    ``facts`` are its data by name: ranks, step, file, parameters, and the values that were expected and seen.
    """

    check: str
    verdict: Verdict
    expected: str
    seen: str
    order: int | None
    line: int | None
    where: tuple[Place, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file of the run, from line ``first`` on. ``marked`` are the numbers of the lines that are quoted."""

    file: str
    first: int
    marked: tuple[int, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A text file, whole."""

    file: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Mark:
    """A moment: ``fault``, ``detection``, ``exit``, ``sdk``, ``error``, ``train``, ``launch`` or ``heal``."""

    t: float
    kind: str
    text: str


@dataclass(frozen=True)
class Span:
    """Something that lasted: ``start``, ``load``, ``save``, ``held``, ``pause``, ``stop``, ``repair`` or ``handler``.

    ``handler`` is any handler of the SDK that neither stops the rank nor repairs it. ``name`` is what it is called.
    """

    kind: str
    name: str
    begin: float
    end: float
    text: str


@dataclass(frozen=True)
class Process:
    """One process of a rank. ``steps`` holds blocks of steps: the first, the last, begin and end."""

    attempt: str
    pid: int
    begin: float
    end: float
    exit: str | None
    steps: tuple[tuple[int, int, float, float], ...]
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Row:
    """A rank with its processes, in order of time."""

    label: str
    rank: int
    node: int
    group: int | None
    processes: tuple[Process, ...]


@dataclass(frozen=True)
class PlannedFault:
    """A fault as it was planned and, in ``seen``, as it landed.

    ``t`` is when it was made, ``noticed`` when the recovery from it began.
    """

    id: str
    t: float | None
    noticed: float | None
    kind: str
    step: int | None
    phase: str | None
    ranks: tuple[int, ...]
    text: str
    seen: str | None


@dataclass(frozen=True)
class Band:
    """A phase of the recovery, behind the rows."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True)
class SdkState:
    """A state of the SDK's controller, by its log."""

    name: str
    begin: float
    end: float
    text: str


@dataclass(frozen=True)
class Timeline:
    """The rows of the ranks, the harness's own moments, the planned faults, and the phases of the recoveries.

    ``states`` are those of the SDK's controller.
    """

    rows: tuple[Row, ...]
    harness: tuple[Mark, ...]
    planned: tuple[PlannedFault, ...]
    phases: tuple[Band, ...]
    states: tuple[SdkState, ...]


@dataclass(frozen=True)
class Phase:
    """A phase of the recovery in seconds, with its budget and with what the fault-free run took for the same."""

    name: str
    begin: float | None
    seconds: float | None
    budget: float | None
    fault_free: float | None
    reason: str


@dataclass(frozen=True)
class Waterfall:
    """A recovery by phases, with the ids of the faults that it answers. Only the one that decides has budgets.

    ``rollback`` is the number of steps that were trained again, where it decides.
    """

    mechanism: str | None
    faults: tuple[str, ...]
    phases: tuple[Phase, ...]
    total: float | None
    budget: float | None
    reason: str
    rollback: float | None
    rollback_budget: int | None


@dataclass(frozen=True)
class Curves:
    """Values by step: ``loss``, ``norm`` and ``step_seconds``."""

    loss: tuple[float | None, ...]
    norm: tuple[float | None, ...]
    step_seconds: tuple[float | None, ...]


@dataclass(frozen=True)
class Difference:
    """The first step in which a curve leaves the fault-free run."""

    step: int
    curve: str


@dataclass(frozen=True)
class StepMark:
    """A fault at its step."""

    step: int
    text: str


@dataclass(frozen=True)
class CurveSet:
    """The curves of the run and of its fault-free run, over the same steps.

    ``compared`` counts the steps of which both runs have a loss, or both a norm.
    """

    steps: tuple[int, ...]
    run: Curves
    baseline: Curves | None
    faults: tuple[StepMark, ...]
    first_difference: Difference | None
    compared: int
    note: str


@dataclass(frozen=True)
class SavedCell:
    """A checkpoint of a rank and a step.

    ``state`` is ``saved``, ``damaged`` by a fault, ``lost``, ``cut off``, ``failing`` (as a statement about it says) or
    ``missing`` (planned, and never begun). ``loaded_by`` lists the ranks that loaded the file, ``tried_by`` those that
    only began to load it.
    """

    rank: int
    step: int
    file: str
    kind: str
    state: str
    loaded_by: tuple[int, ...]
    tried_by: tuple[int, ...]
    planned: bool
    text: str


@dataclass(frozen=True)
class CheckpointMap:
    """The checkpoints of the run by rank and step."""

    steps: tuple[int, ...]
    ranks: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    cells: tuple[SavedCell, ...]
    note: str


@dataclass(frozen=True)
class PlanFacts:
    """The expectations: facts by name, reasons in sentences, and faults with their line of the scenario."""

    facts: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    faults: tuple[tuple[str, str, int | None], ...]


@dataclass(frozen=True)
class Environment:
    """The versions and the machine, the stand-ins with their layer, and the command that runs the same again."""

    facts: tuple[tuple[str, str], ...]
    simulated: tuple[tuple[str, str], ...]
    command: str


@dataclass(frozen=True)
class PageData:
    """All data of a page."""

    run: str
    scenario_name: str
    cell: str
    started: str | None
    seconds: float | None
    verdict: Headline
    statements: tuple[Statement, ...]
    excerpts: dict[str, Excerpt]
    scenario: Text
    not_checked: tuple[dict[str, str], ...]
    timeline: Timeline
    recoveries: tuple[Waterfall, ...]
    curves: CurveSet
    checkpoints: CheckpointMap
    plan: PlanFacts
    environment: Environment
    notes: tuple[str, ...] = field(default=())
