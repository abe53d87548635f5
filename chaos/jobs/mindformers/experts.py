"""Which ranks hold the same experts, as far as a configuration says.

Experts are spread over ranks that are replicas of each other in everything else. The model's layers decide how:

- models that are not legacy (1.7 to 2.1) have whole experts, spread over the ranks of a stage: device matrix (others,
  expert_parallel) (parallel_core/training_graph/device_matrix.py, transformer/moe/ffn.py);
- ``moev3.py``, of legacy models with ``use_gmm``, does the same (modules/transformer, 1.5 to 2.1);
- ``moe.py``, of other legacy models, slices each expert over the model-parallel ranks: device matrix (others,
  expert_parallel, model_parallel) (models/llama/llama_layer.py, 1.5 to 2.1).

So ranks of a stage with the same number modulo a stride hold the same. Optimizer shards multiply the stride where they
divide the copies and the first dimension of the slice (MindSpore, parallel_optimizer/opt_param_mgr.cc and
ops_info/operator_info.cc). MindSpore gives MindIO the smallest set of ranks that hold a parameter in common, and the
rank alone if two such sets merely overlap (2.10, ``_get_cur_rank_dp`` in train/serialization.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from chaos.jobs.mindformers.case import Case
from chaos.jobs.mindformers.configuration import is_off
from chaos.jobs.mindformers.keys import ALONE, DATA_ONLY, shard_size
from chaos.jobs.mindformers.yaml_file import Value
from chaos.plan.describe import group

_ARCHITECTURE = "model.model_config"
_AUTO = frozenset({2, "AUTO_PARALLEL"})


@dataclass(frozen=True)
class Mesh:
    """Parallel sizes of one pipeline stage; ``data`` counts context parallelism, as ``cluster.parallel`` does."""

    data: int
    model: int
    context: int
    experts: int
    shards: int

    @property
    def ranks(self) -> int:
        """Ranks of one stage."""
        return self.data * self.model

    @property
    def dense(self) -> int:
        """Distance between ranks that hold the same slice of dense weights."""
        return self.model * self.shards


@dataclass(frozen=True)
class Reading:
    """One possible layout of the experts; ``subject`` names them.

    ``distance`` is that between ranks that hold the same experts, None if there are none.
    """

    subject: str
    mesh: Mesh
    distance: int | None

    @property
    def stride(self) -> int:
        """Distance between ranks that MindSpore takes for replicas; a stage's ranks if each stands alone.

        If sets overlap, the distance may also depend on the names of the weights: that counts as alone.
        """
        distance = self.distance or self.mesh.dense
        strides = (self.mesh.model, self.mesh.shards, self.mesh.dense, distance)
        if any(stride % other and other % stride for stride, other in itertools.combinations(strides, 2)):
            return self.mesh.ranks
        return max(distance, self.mesh.dense)

    @property
    def replicas(self) -> int:
        """Ranks that MindSpore takes for replicas of each other."""
        return self.mesh.ranks // self.stride

    def __str__(self) -> str:
        """Return the number of copies, and the ranks that hold the copies of rank 0's experts."""
        copies = self.mesh.ranks // (self.distance or self.mesh.dense)
        if copies < 2:
            return f"{self.subject} have 1 copy, which leaves no replica"
        text = f"{self.subject} have {copies} copies: {group(range(0, self.mesh.ranks, self.mesh.ranks // copies))}"
        if self.distance is None:
            return f"{text} hold the same weights"
        if self.replicas < 2:
            return f"{text} hold the same ones, but such sets overlap those of other weights, which leaves no replica"
        return f"{text} hold the same ones"


@dataclass(frozen=True)
class Experts:
    """The experts of a configuration.

    ``size`` is its ``expert_parallel``. ``unknown`` is the reason why this version does not know their layout; else
    ``readings`` are the layouts that the configuration leaves open, and ``hint`` how to choose one.
    """

    size: Value
    mesh: Mesh
    unknown: str = ""
    readings: tuple[Reading, ...] = ()
    hint: str = ""

    @property
    def dense(self) -> int:
        """Copies of the dense weights."""
        return self.mesh.ranks // self.mesh.dense

    @property
    def known(self) -> bool:
        """Whether it is known which ranks are replicas."""
        return len({reading.stride for reading in self.readings}) == 1

    @property
    def stride(self) -> int:
        """Distance between ranks that hold the same state by every reading."""
        return math.lcm(*(reading.stride for reading in self.readings)) if self.readings else self.mesh.ranks


def experts_of(case: Case) -> Experts | None:
    """Return the experts of a job, None if expert_parallel spreads none."""
    typed, mode = case.typed, case.value("parallel.parallel_mode")
    size = case.value("parallel_config.expert_parallel")
    experts = typed.whole("parallel_config.expert_parallel", least=1)
    alone = mode is not None and isinstance(mode.data, (int, str)) and mode.data in ALONE | DATA_ONLY
    if size is None or experts is None or experts < 2 or alone or not typed.flag("use_parallel"):
        return None
    data, model, context, stages = (
        typed.whole(f"parallel_config.{name}", least=1) or 1
        for name in ("data_parallel", "model_parallel", "context_parallel", "pipeline_stage")
    )
    shards = shard_size(typed, data * context)[0] if typed.flag("parallel.enable_parallel_optimizer") else 1
    mesh = Mesh(data * context, model, context, experts, shards)
    if unknown := _unknown(case, mesh):
        return Experts(size, mesh, unknown)
    readings, hint = _readings(case, mesh)
    if all(reading.distance is None for reading in readings):
        return Experts(size, mesh, f"{size.key} {experts} divides no number of ranks that experts are spread over")
    if stages > 1 and all(reading.distance for reading in readings) and not _in_every_stage(case, stages):
        readings.append(Reading("the weights of a pipeline stage without experts", mesh, None))
        hint = hint or f"write num_layers, offset and first_k_dense_replace in {_ARCHITECTURE}"
    return Experts(size, mesh, "", tuple(readings), hint or "let optimizer_weight_shard_size divide the copies")


def _legacy(case: Case) -> bool:
    return not is_off(case.typed.configuration.get("use_legacy"))


def _unknown(case: Case, mesh: Mesh) -> str:
    """Return why this version does not know the layout of the experts; empty if it knows."""
    mode, cube = case.value("parallel.parallel_mode"), case.value(f"{_ARCHITECTURE}.use_3d_tensor_parallel")
    if mode is not None and mode.data in _AUTO:
        return f"in parallel_mode {mode.shown} MindSpore decides it"
    if cube is not None and cube.data is not False:
        return f"{cube.key} slices them another way"
    if _legacy(case) and mesh.context > 1:
        return "legacy models differ in how they spread them beside context_parallel"
    if not _legacy(case) and case.before(1, 7):
        return f"models of {case.release.shown} that are not legacy were not read"
    return ""


def _readings(case: Case, mesh: Mesh) -> tuple[list[Reading], str]:
    """Return the layers that the model may have, and the keys that the configuration needs if it leaves several.

    A layer for which the sizes do not work out is left out: MindFormers ends such a job.
    """
    whole, cut = _strides(case, mesh, mesh.experts), _strides(case, mesh, mesh.experts * mesh.model)
    spread = mesh.data // mesh.context * mesh.model % mesh.experts == 0
    whole_readings = [Reading("whole experts (moev3.py)", mesh, share) for share in whole if spread]
    cut_readings = [Reading("sliced experts (moe.py)", mesh, stride) for stride in cut if mesh.data % mesh.experts == 0]
    if not _legacy(case):
        return [Reading("whole experts", mesh, share) for share in whole if spread], ""
    number, expert_parallel = (
        case.typed.whole(f"moe_config.{name}") for name in ("expert_num", "expert_model_parallel")
    )
    grouped, shared = case.value("moe_config.use_gmm"), case.typed.whole("moe_config.shared_expert_num")
    if number is None or number < 2:
        missing = "write moe_config.expert_num and moe_config.use_gmm, as the model has them"
        return [*whole_readings, *cut_readings, Reading("the weights of a model without experts", mesh, None)], missing
    by_moev3 = grouped is not None and grouped.data is True
    if by_moev3 and shared:
        return whole_readings, ""
    if not by_moev3 and expert_parallel in (None, mesh.model):
        return cut_readings, ""
    missing = "write shared_expert_num beside use_gmm, or leave expert_model_parallel out"
    return [*whole_readings, *cut_readings], missing


def _strides(case: Case, mesh: Mesh, stride: int) -> list[int]:
    """Return distances between ranks with the same experts and the same optimizer state, as far as they are known."""
    copies = mesh.ranks // stride
    if mesh.shards == 1 or copies < 2:
        return [stride]
    if copies % mesh.shards:
        # MindSpore's words on such a size, and its sources, leave open whether it slices over all copies or none.
        return [stride, mesh.ranks]
    # Weights begin with the expert's number in legacy models, else with rows of experts, which divide as dense ones do.
    number = case.typed.whole("moe_config.expert_num") if _legacy(case) else None
    divides = number is None or number // mesh.experts % mesh.shards == 0
    return [stride * mesh.shards if divides else stride]


def _in_every_stage(case: Case, stages: int) -> bool:
    """Return whether every pipeline stage is known to have a layer of experts.

    Dense layers come first, so it is enough that the first stage has more layers than these, and every other stage any.
    """
    read = (case.typed.whole(f"{_ARCHITECTURE}.{name}") for name in ("num_layers", "num_hidden_layers", "n_layer"))
    layers = next((number for number in read if number is not None), None)
    dense = case.typed.whole(f"{_ARCHITECTURE}.first_k_dense_replace")
    if dense is None:
        dense = case.typed.whole("moe_config.first_k_dense_replace")
    frequency = case.value(f"{_ARCHITECTURE}.moe_layer_freq")
    if layers is None or dense is None or (frequency is not None and frequency.data != 1):
        return False
    chunks = case.typed.whole(f"{_ARCHITECTURE}.pp_interleave_num", least=1) or 1
    offsets = list(_first_offsets(case, stages))
    sizes = [layers // (stages * chunks) + offset for offset in offsets]
    return len(sizes) == stages and min(sizes) >= 1 and sizes[0] > dense


def _first_offsets(case: Case, stages: int) -> Iterator[int]:
    """Yield the layers of each stage above the mean, in its first chunk; none if they are written otherwise."""
    value = case.value(f"{_ARCHITECTURE}.offset")
    written = 0 if value is None else value.plain()
    if written == 0:
        written = [0] * stages
    if isinstance(written, list) and written and isinstance(written[0], list):
        written = written[0]
    if isinstance(written, list):
        yield from (number for number in written if isinstance(number, int) and not isinstance(number, bool))
