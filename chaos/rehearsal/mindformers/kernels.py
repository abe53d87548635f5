"""Operators that MindSpore (2.10) has for Ascend only, composed of operators that a CPU has.

They are cells that replace primitives, in the modules of MindFormers that use them (2.1): same arguments, same results
up to rounding, differentiable. They cover the training of a model without parallel slices, and no more.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable

NAMES = ("RmsNorm", "Outer", "FlashAttentionScore", "EmbeddingDenseBackward", "NPUGetFloatStatusV2")
"""The replaced operators, by MindSpore's names."""

_TRAINING = "mindformers.parallel_core.training_graph"


def install(watch: Callable[[str, Callable[[ModuleType], None]], None]) -> None:
    """Replace each operator after the import of the module that uses it, through ``watch(module, hook)``."""
    watch(f"{_TRAINING}.transformer.norm", replace_norm)
    watch(f"{_TRAINING}.transformer.flash_attention", replace_attention)
    watch(f"{_TRAINING}.base_models.common.embeddings.rotary_pos_embedding", replace_rotary)
    watch(f"{_TRAINING}.tensor_parallel.layers", replace_embedding)
    watch("mindspore.nn.wrap.loss_scale", replace_overflow)


def replace_norm(module: ModuleType) -> None:
    """Replace ``P.RmsNorm`` in MindFormers' norm."""
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
    """Replace ``Outer`` in the rotary position embedding."""
    from mindspore import nn

    class Outer(nn.Cell):  # type: ignore[misc]
        def construct(self, first: Any, second: Any) -> Any:
            return first.reshape(-1, 1) * second.reshape(1, -1)

        def shard(self, *strategies: Any, **more: Any) -> Any:
            del strategies, more
            return self

    module.Outer = Outer  # type: ignore[attr-defined]


def replace_embedding(module: ModuleType) -> None:
    """Replace the look-up in the embedding.

    Its gradient is ``EmbeddingDenseBackward``: a product with ones and zeros.
    """
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
    """Replace ``FlashAttentionScore`` with layout BNSD or BSH, without dropout. It refuses unknown arguments.

    Masks are those that MindSpore documents (2.10): 1 discards; sparse mode 0 applies the mask within ``next_tokens``,
    1 applies the mask, 2 and 3 keep the positions that are not later.
    """
    from mindspore import nn, ops

    everything = 2147483647

    class FlashAttentionScore(nn.Cell):  # type: ignore[misc]
        def __init__(
            self,
            head_num: int,
            keep_prob: float = 1.0,
            scale_value: float = 1.0,
            pre_tokens: int = everything,
            next_tokens: int = everything,
            inner_precise: int = 0,
            input_layout: str = "BSH",
            sparse_mode: int = 0,
        ) -> None:
            super().__init__()
            del inner_precise  # MindSpore documents it as without effect
            if keep_prob != 1.0 or input_layout not in ("BNSD", "BSH"):
                raise ValueError(
                    f"the rehearsal's attention has no dropout and knows BNSD and BSH, not {input_layout} with "
                    f"keep_prob {keep_prob}"
                )
            if sparse_mode not in (0, 1, 2, 3):
                raise ValueError(f"the rehearsal's attention knows the sparse modes 0 to 3, not {sparse_mode}")
            if sparse_mode == 0 and (pre_tokens != everything or next_tokens not in (0, everything)):
                raise ValueError(
                    f"the rehearsal's attention knows no bands: pre_tokens {pre_tokens}, next_tokens {next_tokens}"
                )
            self._heads = head_num
            self._scale = scale_value
            self._flat = input_layout == "BSH"
            self._mode = sparse_mode
            self._causal = sparse_mode in (2, 3) or (sparse_mode == 0 and next_tokens == 0)

        def construct(
            self,
            query: Any,
            key: Any,
            value: Any,
            real_shift: Any = None,
            drop_mask: Any = None,
            padding_mask: Any = None,
            attn_mask: Any = None,
            prefix: Any = None,
            actual_seq_qlen: Any = None,
            actual_seq_kvlen: Any = None,
        ) -> Any:
            if real_shift is not None or drop_mask is not None or padding_mask is not None or prefix is not None:
                raise ValueError("the rehearsal's attention knows attn_mask, no other mask, shift or prefix")
            if actual_seq_qlen is not None or actual_seq_kvlen is not None:
                raise ValueError("the rehearsal's attention knows no actual_seq_qlen and actual_seq_kvlen")
            if self._mode != 0 and attn_mask is None:
                raise ValueError("attention with sparse mode 1, 2 or 3 needs attn_mask")
            shape = query.shape
            if self._flat:
                width = shape[2] // self._heads
                query, key, value = self._split(query, width), self._split(key, width), self._split(value, width)
            if self._causal and query.shape[2] != key.shape[2]:
                raise ValueError("the rehearsal's attention has as many queries as keys")
            query, key, value = (x.astype("float32") for x in (query, key, value))
            repeat = query.shape[1] // key.shape[1]
            key, value = ops.repeat_interleave(key, repeat, 1), ops.repeat_interleave(value, repeat, 1)
            scores = ops.matmul(query, key.swapaxes(2, 3)) * self._scale
            # In sparse mode 0 next_tokens counts where there is a mask, in 2 and 3 the mask is only a template.
            if self._causal and attn_mask is not None:
                scores = scores - 1e9 * ops.triu(ops.ones_like(scores), 1)
            if self._mode < 2 and attn_mask is not None:
                scores = ops.where(attn_mask.astype("bool"), -1e9 + 0 * scores, scores)
            weights = ops.softmax(scores, -1)
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
    """Replace the device's status of overflows: whether any gradient is not finite."""
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
