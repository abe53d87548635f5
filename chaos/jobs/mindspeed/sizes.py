"""The parallel sizes of a job of Megatron, and which of its ranks hold the same state.

Megatron's order of ranks is tensor, context, expert, data, pipeline (``tp-cp-ep-dp-pp``), the first one fastest.
Context parallelism counts as data parallelism here: ranks that share a sequence hold the same weights. MindIO TFT cuts
each data-parallel group into as many parts as there are replicas; rank i of one part holds what rank i of every other
part holds. The groups of experts are cut in the same way, so in both the replicas are a whole part of the stage apart.

Source: MindSpeed-LLM c77308a, ``tft_replica_group.ttp_initialize_replica_dp_group`` and ``TTPReplicaOptimizer``.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.jobs.mindspeed.arguments import Arguments
from chaos.jobs.mindspeed.switches import NO_REPLICA

TENSOR = "--tensor-model-parallel-size"
PIPELINE = "--pipeline-model-parallel-size"
CONTEXT = "--context-parallel-size"
EXPERT = "--expert-model-parallel-size"
EXPERT_TENSOR = "--expert-tensor-parallel-size"
DISTRIBUTED = "--use-distributed-optimizer"
REPLICAS = "--optimizer-replica-num"


@dataclass(frozen=True)
class Sizes:
    """Parallel sizes. ``replicas`` is how many copies of the optimizer's state MindIO TFT keeps; 1 without any.

    ``distributed`` says that the optimizer's state is spread over the data-parallel group (ZeRO-1), ``protected`` that
    MindIO TFT watches over it. Without, a checkpoint has all of it, and which rank holds which part does not matter.
    """

    ranks: int
    tensor: int
    pipeline: int
    context: int
    expert: int
    expert_tensor: int
    distributed: bool
    protected: bool
    replicas: int

    @property
    def fit(self) -> bool:
        """Whether the ranks can be divided by the sizes."""
        return self.ranks % (self.tensor * self.pipeline * self.context) == 0

    @property
    def data(self) -> int:
        """Ranks that hold the same weights, context parallelism included."""
        return self.ranks // (self.tensor * self.pipeline)

    @property
    def expert_data(self) -> int:
        """Ranks that hold the same experts."""
        return self.ranks // (self.expert_tensor * self.expert * self.pipeline)

    @property
    def slices(self) -> int:
        """How many ranks of a stage have weights of their own: each slice is in one file of a checkpoint."""
        return self.tensor if self.expert == 1 else self.expert_tensor * self.expert

    @property
    def shards(self) -> int | None:
        """Over how many ranks one copy of the optimizer's state is spread; None where each rank has all of it.

        Where the parts do not come out even, the job does not start, and no number is right.
        """
        if not (self.distributed and self.protected) or self.data % self.replicas:
            return None
        return self.data // self.replicas

    @property
    def spread(self) -> bool:
        """Whether Megatron spreads the optimizer's state over the data-parallel group, and nothing keeps replicas."""
        return self.distributed and not self.protected and self.data > 1

    @property
    def stride(self) -> int | None:
        """Distance between ranks with the same state, where experts decide it and not the dense weights."""
        return self.slices if self.expert > 1 and self.shards is None else None


def sizes_of(arguments: Arguments, ranks: int, *, protected: bool) -> Sizes:
    """Return the sizes that the arguments say; ``protected`` says that MindIO TFT makes replicas of the optimizer."""
    tensor = arguments.whole(TENSOR, 1)
    kept = protected and arguments.get(NO_REPLICA) is None
    asked = arguments.whole(REPLICAS, 2)
    return Sizes(
        ranks,
        tensor,
        arguments.whole(PIPELINE, 1),
        arguments.whole(CONTEXT, 1),
        arguments.whole(EXPERT, 1),
        arguments.whole(EXPERT_TENSOR, tensor),
        arguments.get(DISTRIBUTED) is not None,
        protected,
        (asked if asked > 1 else 2) if kept else 1,
    )
