"""The plan's knowledge of a kind of job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from chaos.plan.recovery.vendor import MINDSPORE, Vendor
from chaos.scenario.errors import Problem
from chaos.scenario.models.terms import Mechanism

if TYPE_CHECKING:
    from chaos.plan.draft import Draft
    from chaos.plan.problems import Problems

CheckpointForm = Literal["mindspore", "mindformers", "megatron"]


@dataclass(frozen=True)
class JobTraits:
    """Properties of a job kind that decide what can be planned for it.

    ``observable`` holds the barrier phases that a rank of this job can report. ``checkpoint_form`` is the layout of
    its end-of-life checkpoint: MindSpore's own ``ttp_saved_checkpoints-step_N`` directory, or MindFormers' ordinary
    checkpoint directory; None where it has none. ``end_of_life_prefix`` is the first part of the file names.
    ``most_stages`` is the largest pipeline that it can train, ``most_ranks`` how many ranks it can have, ``slices``
    and ``shards`` hold the sizes of model parallelism and of the optimizer's shards that its own script can; None
    where there is no limit. ``storage`` is the directory that it saves in, relative to its working directory; None
    where the directory is not known, so that no fault can hit it. ``group_info`` says that its own script, where it
    slices weights, writes ``group_info.pb`` and resumes from periodic checkpoints by it. ``restarts`` says that a
    job of this kind, started again, goes on from periodic checkpoints by itself, each rank from its own file;
    ``resumes_periodic`` that a script of the scenario's own may go on from periodic checkpoints when it is started
    again, as the scenario says; ``any_replica`` that its own script does, from the newest checkpoint of any rank of
    its replica group. ``devices`` are the devices that it can train on. ``genuine`` says that nothing of the
    framework is replaced, so MindSpore's Ascend-only features need Ascend. ``gradients`` says that the agent sees
    the reduced gradients. ``own_script`` says that it has a script, so that the scenario need not name one.
    ``loading`` are the ways in which the agent can come in. ``mechanisms`` are the mechanisms that its loop can
    take part in, None for all. ``lacks`` maps keys of a scenario to a missing ability of the kind, in words that
    follow its name. ``watches_slices`` says that its watch over the global norm is right for sliced weights too.
    ``file_format`` is the suffix of the files of an end-of-life checkpoint, None where their names are not known;
    ``sinks_steps`` says that in MindFormers' form each step is an epoch of its own, as in sink mode, so that
    ``5_1`` is step 5. ``rank_directories`` says that each rank saves in a directory of its own, ``rank_N``.
    ``alters`` are the values that a fault can change inside its ranks: gradient, weight, activation, batch, loss.
    ``spikes`` are the parameters by which its gradients can be scaled: norm, factor.
    ``same_losses`` are keys of the job that change no loss of its own script while there is no fault, so cells that
    differ only in them share a baseline. ``ports`` maps the use of each port that others connect to, a word of the
    faults' parameter ``port``, to the number of the port in the launch, from 0; ``own_ports`` are the words for
    which each rank records its own port. ``kept`` is the number of periodic checkpoints kept of a rank, None where
    it is not known. ``unplanned`` are statements of the job's own files about the checkpoint of a resume that this
    version does not plan: problems where the plan has a resume. ``all_records`` says that a job goes by the records
    of its checkpoints only while every rank has one. ``replica_stride`` is the distance between ranks of a stage
    that hold the same state, where the parallel sizes of the scenario do not say it: the job spreads experts over
    ranks that are replicas in everything else. ``mindspore`` says that MindSpore trains it, and counts its steps.
    ``vendor`` is whose fault tolerance it has, None where it has none but its launcher's. ``gathers_by`` is the
    distance between ranks of a stage of which one writes the whole state of all, None where each rank writes its own.
    ``rules`` notes what its own files forbid of the planned faults.
    ``starts_fast`` says that it starts fast enough for each of many runs to have a fault-free run of its own.
    ``loss_on_rank_0`` says that in a pipeline only rank 0 has a valid loss, not the ranks of the last stage.
    ``own_launcher`` says that a program of the user's own may start its ranks (``job.command``).
    ``own_python`` says that a scenario may name the interpreter of its ranks (``job.python``).
    ``optimizers`` says that its agent sees the updates of each optimizer of a script (``job.step_optimizer``).
    ``seeds`` says that its agent can seed the generators of a script that seeds none (``job.seed_at_start``).
    ``launcher_restarts`` says that its launcher stays while the ranks train, and can start all of them again.
    ``lost_starts`` says why ranks that its launcher starts again would not meet; empty where they do.
    ``coordinators`` are the roles of its processes beside the ranks without which no rank trains on.
    ``shards_state`` says that its ranks may hold shards of the state, and that the agent records which of them do.
    """

    observable: frozenset[str]
    checkpoint_form: CheckpointForm | None
    end_of_life_prefix: str = "ttp"
    most_stages: int | None = None
    most_ranks: int | None = None
    slices: frozenset[int] | None = None
    shards: frozenset[int] | None = None
    storage: str | None = None
    group_info: bool = False
    restarts: bool = False
    resumes_periodic: bool = False
    devices: frozenset[str] = frozenset({"CPU"})
    genuine: bool = False
    gradients: bool = True
    own_script: bool = True
    loading: frozenset[str] = frozenset({"path"})
    any_replica: bool = False
    mechanisms: frozenset[Mechanism] | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)
    watches_slices: bool = False
    file_format: str | None = "ckpt"
    sinks_steps: bool = True
    rank_directories: bool = True
    alters: frozenset[str] = frozenset()
    spikes: frozenset[str] = frozenset({"norm", "factor"})
    same_losses: frozenset[str] = frozenset()
    ports: Mapping[str, int] = field(default_factory=dict)
    own_ports: frozenset[str] = frozenset()
    kept: int | None = None
    unplanned: tuple[Problem, ...] = ()
    all_records: bool = False
    replica_stride: int | None = None
    loss_on_rank_0: bool = False
    mindspore: bool = True
    vendor: Vendor | None = MINDSPORE
    gathers_by: int | None = None
    rules: Callable[[Draft, Problems], None] | None = None
    starts_fast: bool = False
    own_launcher: bool = False
    own_python: bool = False
    optimizers: bool = False
    seeds: bool = False
    launcher_restarts: bool = False
    lost_starts: str = ""
    shards_state: bool = False
    coordinators: frozenset[str] = frozenset()
