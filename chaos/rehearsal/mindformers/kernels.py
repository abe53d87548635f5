"""Operators that MindSpore (2.10) has for Ascend only, composed of operators that a CPU has.

They are cells that stand in the place of primitives, in the modules of MindFormers that use them (2.1): same arguments,
same results up to rounding, differentiable. Only what the training of a model without parallel slices needs is there.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

NAMES = ("RmsNorm", "Outer", "FlashAttentionScore", "EmbeddingDenseBackward", "NPUGetFloatStatusV2")
"""The operators that are replaced, by MindSpore's names."""


def replace_norm(module: ModuleType) -> None:
    """``P.RmsNorm`` in MindFormers' norm."""
    from mindspore import nn, ops

    class RmsNorm(nn.Cell):  # type: ignore[misc]
        def __init__(self, epsilon: float = 1e-6) -> None:
            super().__init__()
            self._epsilon = epsilon

        def construct(self, x: Any, gamma: Any) -> Any:
            scale = ops.rsqrt(ops.mean(x * x, -1, True) + self._epsilon)
            return x * scale * gamma, scale

        def shard(self, *strategies: Any, **more: Any) -> Any:
            del strategies, more
            return self

    module.P = _With(module.P, {"RmsNorm": RmsNorm})  # type: ignore[attr-defined]


def replace_rotary(module: ModuleType) -> None:
    """``Outer`` in the rotary position embedding."""
    from mindspore import nn

    class Outer(nn.Cell):  # type: ignore[misc]
        def construct(self, first: Any, second: Any) -> Any:
            return first.reshape(-1, 1) * second.reshape(1, -1)

        def shard(self, *strategies: Any, **more: Any) -> Any:
            del strategies, more
            return self

    module.Outer = Outer  # type: ignore[attr-defined]


def replace_embedding(module: ModuleType) -> None:
    """The look-up in the embedding, whose gradient is ``EmbeddingDenseBackward``: a product with ones and zeros."""
    from mindspore import nn, ops

    class Embedding(nn.Cell):  # type: ignore[misc]
        def construct(self, indices: Any, weight: Any) -> Any:
            return ops.matmul(ops.one_hot(indices, weight.shape[0], _one(), _zero()), weight)

    def _one() -> Any:
        return ops.scalar_to_tensor(1.0)

    def _zero() -> Any:
        return ops.scalar_to_tensor(0.0)

    original = module.VocabParallelEmbedding.__init__

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.embedding_morph = Embedding()

    module.VocabParallelEmbedding.__init__ = initialise


def replace_attention(module: ModuleType) -> None:
    """``FlashAttentionScore`` with layout BNSD or BSH, without dropout."""
    from mindspore import nn, ops

    class FlashAttentionScore(nn.Cell):  # type: ignore[misc]
        def __init__(
            self,
            head_num: int,
            keep_prob: float = 1.0,
            scale_value: float = 1.0,
            input_layout: str = "BSH",
            **more: Any,
        ) -> None:
            super().__init__()
            del more
            if keep_prob != 1.0 or input_layout not in ("BNSD", "BSH"):
                raise ValueError(
                    f"the rehearsal's attention has no dropout and knows BNSD and BSH, not {input_layout} with "
                    f"keep_prob {keep_prob}"
                )
            self._heads = head_num
            self._scale = scale_value
            self._flat = input_layout == "BSH"

        def construct(self, query: Any, key: Any, value: Any, *masks: Any) -> Any:
            shape = query.shape
            if self._flat:
                width = shape[2] // self._heads
                query, key, value = self._split(query, width), self._split(key, width), self._split(value, width)
            query, key, value = (x.astype("float32") for x in (query, key, value))
            repeat = query.shape[1] // key.shape[1]
            key, value = ops.repeat_interleave(key, repeat, 1), ops.repeat_interleave(value, repeat, 1)
            scores = ops.matmul(query, key.swapaxes(2, 3)) * self._scale
            later = ops.triu(ops.ones_like(scores), 1)
            weights = ops.softmax(scores - 1e9 * later, -1)
            result = ops.matmul(weights, value)
            if self._flat:
                result = result.swapaxes(1, 2).reshape(shape)
            return scores.max(axis=-1), scores.max(axis=-1), weights, result

        def _split(self, x: Any, width: int) -> Any:
            return x.reshape(x.shape[0], x.shape[1], -1, width).swapaxes(1, 2)

        def shard(self, *strategies: Any, **more: Any) -> Any:
            del strategies, more
            return self

    module.FlashAttentionScore = FlashAttentionScore  # type: ignore[attr-defined]


def replace_overflow(module: ModuleType) -> None:
    """The device's status of overflows: whether any gradient is not finite."""
    from mindspore import ops

    def get_overflow_status(self: Any, status: Any, gradients: Any) -> Any:
        # The compiler takes no `del`.
        finite = ops.isfinite(gradients[0]).all()
        for gradient in gradients[1:]:
            finite = ops.logical_and(finite, ops.isfinite(gradient).all())
        return ops.logical_not(finite)

    module.TrainOneStepWithLossScaleCell.get_overflow_status = get_overflow_status


class _With:
    """A module with other values for some names."""

    def __init__(self, module: Any, names: dict[str, Any]) -> None:
        self._module = module
        self._names = names

    def __getattr__(self, name: str) -> Any:
        names = self.__dict__["_names"]
        return names[name] if name in names else getattr(self.__dict__["_module"], name)
