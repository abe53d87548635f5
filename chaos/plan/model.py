"""The plan: what should happen, worked out before anything starts.

A plan is data. Checks compare it with the history; nothing here looks at a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.plan.recovery.registry import Facts, Names
from chaos.scenario.models import job

MOST_STEPS_PER_UPDATE = job.MOST_STEPS_PER_UPDATE

PHASES: Mapping[str, tuple[str, ...]] = Facts(lambda mechanism: mechanism.phases)
"""Phases of the recovery, in order, by the mechanism that acts. Each mechanism says in its package what ends them."""

ENDING = Names(lambda mechanism: mechanism.ends_launch)
"""Mechanisms with which the launch ends: training goes on when the job is started again."""


STORAGE_FULL, STORAGE_READ_ONLY = "storage full", "storage read-only"
STORAGE_ERROR, STORAGE_GONE, STORAGE_DENIED = "storage error", "storage gone", "storage denied"
"""Effects of faults that take no rank: nothing that is saved from then on is finished."""

VOLUME_GONE = "volume gone"
"""Effect of a fault that takes the storage from its own ranks alone: nothing that these save is finished."""

STORAGE = (STORAGE_FULL, STORAGE_READ_ONLY, STORAGE_ERROR, STORAGE_GONE, STORAGE_DENIED, VOLUME_GONE)


@dataclass(frozen=True)
class PlannedFault:
    """One fault with its target resolved to ranks.

    ``seed`` is the seed of a random target, None otherwise. ``trigger`` is the scenario's trigger as plain data.
    ``effect`` is what its kind does to a rank (chaos.plan.schedule.EFFECTS). ``role`` is the process beside the ranks
    that it hits; then it hits no rank. ``taken_back``: what it makes wrong is trained again, from a state of before it.
    """

    id: str
    kind: str
    ranks: tuple[int, ...]
    trigger: dict[str, Any]
    parameters: dict[str, Any]
    seed: int | None
    line: int | None
    effect: str = "none"
    role: str | None = None
    taken_back: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it alone stops no training, so that no mechanism has to answer it."""
        return self.effect in ("none", *STORAGE)


@dataclass(frozen=True)
class Recovery:
    """What one mechanism must do, in the order in which they come.

    ``faults`` are the ids of the faults that it answers. Training goes on after ``step``; that of an end-of-life
    checkpoint is the step that is saved. It is None where the trigger leaves it open. Where ``succeeds`` is False the
    mechanism is tried and must fail: the next recovery answers the same faults, or none can.

    ``restarted`` lists the ranks that get a new process within the launch, ``copied`` those whose state comes from a
    replica; with ``reads_checkpoint`` the state of all ranks comes from a periodic checkpoint. ``trained_again`` is how
    many complete steps are lost by that, None where nothing is. The ranks in ``one_more`` may have completed one step
    more than that when they are killed, or not: it is a matter of time. Within an accumulation of gradients they may
    have completed up to ``more`` steps more. ``as_fault_free``: the state of ``step`` is
    that of the fault-free run; it is not behind a value that was changed and that nothing has taken back.
    """

    mechanism: str
    faults: tuple[str, ...]
    step: int | None
    succeeds: bool = True
    restarted: tuple[int, ...] = ()
    copied: tuple[int, ...] = ()
    reads_checkpoint: bool = False
    trained_again: int | None = None
    one_more: tuple[int, ...] = ()
    more: int = 1
    as_fault_free: bool = True


@dataclass(frozen=True)
class PlannedCheckpoint:
    """The end-of-life checkpoint that must be saved.

    ``step`` is None where the trigger leaves it open (elapsed time, a log line): then it is the last step that the
    saving rank's history shows as trained. ``savers`` holds one rank for each replica group, in group order;
    ``entitled`` maps each saver to every rank of its group that may save in its place. ``directory`` and ``files``
    (rank → path relative to the job's checkpoint directory) are None/empty where the step is open.
    """

    step: int | None
    savers: tuple[int, ...]
    entitled: dict[int, tuple[int, ...]]
    directory: str | None
    files: dict[int, str]


@dataclass(frozen=True)
class PlannedRestore:
    """Periodic checkpoints from which a job is started again that ended without an end-of-life checkpoint.

    ``step`` is the newest of which every replica group has a file to go on from, None where there is none: then the job
    cannot be resumed. ``lost`` are the ranks whose files a fault takes away. ``damaged`` maps ranks to the step of
    their file that a fault damages: nobody may go on from it. ``holders`` maps every rank to the ranks whose file it
    may load: itself or, where its own is lost or damaged, others of its replica group. ``own`` says that a step will do
    only if every rank has a file of its own: a replica's is no help. ``unrecorded`` is in plans of earlier versions
    only: without the one record that names the last checkpoint they expected the job to end, whatever files are left.
    """

    step: int | None
    lost: tuple[int, ...]
    holders: dict[int, tuple[int, ...]]
    damaged: dict[int, int] = field(default_factory=dict)
    unrecorded: bool = False
    own: bool = False


@dataclass(frozen=True)
class Watch:
    """The watch over the global norm: its threshold, and steps that the record of an earlier run lists already."""

    threshold: float
    recorded: tuple[int, ...] = ()


@dataclass(frozen=True)
class Comparable:
    """How far a run can be compared with the fault-free one.

    ``until`` is the last step whose state can be; 0 is the state before the first step, -1 means none.
    ``losses_until`` is the last step whose loss can be. ``why`` is the reason, a sentence without its full stop.
    ``finite_until`` is the last step whose loss must be finite, ``finite_gradients_until`` that of the reduced
    gradients; None where all must be.
    """

    until: int
    losses_until: int
    why: str
    finite_until: int | None = None
    finite_gradients_until: int | None = None


@dataclass(frozen=True)
class Budget:
    """Budgets in seconds. ``phases`` holds those of PHASES[mechanism] that have one."""

    total: float | None
    phases: dict[str, float]


@dataclass(frozen=True)
class Aids:
    """What the job has to make a recovery shorter; each is off by default, as a rehearsal has it.

    ``watchdog`` is None where the job's collectives have no timeout that is looked at. ``exec_timeout`` and ``poll``
    are the collective's timeout and the watchdog's poll in seconds, scaled by ``time_scale``.
    """

    watchdog: bool | None = None
    exec_timeout: float | None = None
    poll: float | None = None
    time_scale: float | None = None
    asynchronous_saving: bool = False
    memory: bool = False
    graph: bool = False
    compile_cache: bool = False


@dataclass(frozen=True)
class Comparison:
    """What is judged between this run and the one whose cell differs in ``axis`` alone.

    ``at_most`` maps a measure to the largest share of the first cell's that the second may have.
    """

    axis: str
    at_most: dict[str, float]


@dataclass(frozen=True)
class Plan:
    """Everything that is expected of one matrix cell.

    ``replica_groups`` lists ranks that hold identical weights and optimizer state, ordered by their first rank.
    ``mechanism`` is the last one that must succeed, None when nothing should act (no fault) and "none" when the plan
    shows that no mechanism can (the job just ends). ``recoveries`` holds everything that mechanisms must do, in order.
    ``strategies`` are those that the cluster's agent may choose of, empty where there is no agent.
    ``comparable`` is None where the whole run can be compared with the fault-free one,
    ``watch`` where nobody watches the global norm. ``sink_size`` is how many steps may be recorded as one.
    ``failing`` are the checks in which the run may fail by ``finding``. It holds with ``finding_sdk`` only, if given,
    and in every run unless ``finding_always`` is false; with the vendor's SDK ``failing_with_vendor`` may fail, too.
    ``configured`` tells for each value that the job's own files decide, by its key in a scenario or by its name, what
    it is and where it stands.
    ``resume_step`` is the first step trained after the resume, None if open or if there is none; ``resumes`` says
    whether the job is started again after it has ended; ``restore`` says from which periodic checkpoints, None where it
    is from an end-of-life checkpoint or not at all. ``loss_ranks`` are the first and the last rank whose loss is
    valid, None for all. ``steps_per_update`` is how many steps come to one update of the optimizer; None in plans of
    earlier versions, which took every step for one. ``gradients``: the ranks record their reduced gradients.
    ``group_info``: the job must tell of its replica groups in ``group_info.pb``. ``reasons`` explains each derived
    expectation in a sentence.
    ``lines`` maps an expectation ("checkpoint.step", "mechanism", "repair", "recovery.detection", …) to the line of
    the scenario file that wrote it
    or, where the plan filled it in, to the line it follows from.
    """

    scenario: str
    source: str
    cell: str
    seed: int
    ranks: int
    nodes: int
    replica_groups: tuple[tuple[int, ...], ...]
    faults: tuple[PlannedFault, ...]
    mechanism: str | None
    checkpoint: PlannedCheckpoint | None
    resumes: bool
    resume_step: int | None
    last_step: int
    steps_per_epoch: int
    checkpoint_interval: int | None
    protection: tuple[str, ...]
    loss_tolerance: float
    baseline: str
    budget: Budget
    timings: str
    finding: str | None
    failing: tuple[str, ...] = ()
    finding_sdk: str | None = None
    finding_always: bool = True
    failing_with_vendor: tuple[str, ...] = ()
    recoveries: tuple[Recovery, ...] = ()
    strategies: tuple[str, ...] = ()
    aids: Aids = Aids()
    comparison: Comparison | None = None
    restore: PlannedRestore | None = None
    group_info: bool = False
    gradients: bool = True
    loss_ranks: tuple[int, int] | None = None
    comparable: Comparable | None = None
    watch: Watch | None = None
    sink_size: int = 1
    steps_per_update: int | None = None
    configured: dict[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)

    def has_loss(self, rank: int) -> bool:
        """Whether the loss of a rank says something: in pipeline stages that are not the last it is no valid value."""
        return self.loss_ranks is None or self.loss_ranks[0] <= rank <= self.loss_ranks[1]

    @property
    def goes_on(self) -> tuple[Recovery, ...]:
        """The recoveries after which training goes on within the launch, in order."""
        return tuple(one for one in self.recoveries if one.succeeds and one.mechanism not in ENDING)
