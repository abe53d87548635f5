"""Compares the substituted kernels with numpy; a program of its own, since MindSpore compiles what is in files."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from chaos.rehearsal.mindformers import kernels


class Namespace(ModuleType):
    """A module with these names."""

    def __init__(self, **names: Any) -> None:
        super().__init__("namespace")
        vars(self).update(names)


ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
source = np.random.default_rng(1)


def made(*shape: int) -> Any:
    return source.normal(size=shape).astype(np.float32)


def told(name: str, got: Any, wanted: Any) -> None:
    assert np.allclose(got.asnumpy(), wanted, atol=1e-5), name
    print(name)


norm = Namespace(P=ops.operations)
kernels.replace_norm(norm)
x, gamma = made(3, 2, 8), made(8)
scaled = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gamma
told("norm", norm.P.RmsNorm(1e-6)(Tensor(x), Tensor(gamma))[0], scaled)
assert norm.P.MatMul is ops.operations.MatMul

rotary = Namespace()
kernels.replace_rotary(rotary)
told("outer", rotary.Outer()(Tensor(x[0, 0]), Tensor(gamma)), np.outer(x[0, 0], gamma))


class Lookup(nn.Cell):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embedding_morph: Any = None


layers = Namespace(VocabParallelEmbedding=Lookup)
kernels.replace_embedding(layers)
lookup = Lookup().embedding_morph
indices, weight, upstream = np.array([[1, 4, 1], [0, 2, 2]], np.int32), made(5, 8), made(2, 3, 8)
told("embedding", lookup(Tensor(indices), Tensor(weight)), weight[indices])
back = ms.grad(lambda table: (lookup(Tensor(indices), table) * Tensor(upstream)).sum())(Tensor(weight))
summed = np.zeros_like(weight)
np.add.at(summed, indices, upstream)
told("embedding's gradient", back, summed)


def attention(query: Any, key: Any, value: Any, scale: float, discarded: Any) -> Any:
    key, value = (np.repeat(one, query.shape[1] // one.shape[1], 1) for one in (key, value))
    scores = query @ key.swapaxes(2, 3) * scale
    scores = np.where(discarded, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


flash = Namespace()
kernels.replace_attention(flash)
query, key, value = made(2, 4, 6, 8), made(2, 2, 6, 8), made(2, 2, 6, 8)
later = np.triu(np.ones((6, 6), np.uint8), 1)
padded = np.broadcast_to(later, (2, 1, 6, 6)).copy()
padded[1, :, :, 2] = 1  # a token of padding, and earlier ones of another document
padded[0, :, 4:, :3] = 1
apart = (np.arange(6)[:, None] // 3 != np.arange(6) // 3).astype(np.uint8)
flat = [one.swapaxes(1, 2).reshape(2, 6, -1) for one in (query, key, value)]
template = np.triu(np.ones((2048, 2048), np.uint8), 1)
for name, mask, discarded, told_by in (
    ("causal", later, later, {"next_tokens": 0}),
    ("as the data says", padded, padded, {"next_tokens": 0}),
    ("within its next tokens", apart, apart | later, {"next_tokens": 0}),
    ("of any tokens", apart, apart, {}),
    ("of all", apart, apart, {"next_tokens": 0, "sparse_mode": 1}),
    ("compressed", template, later, {"next_tokens": 0, "sparse_mode": 2}),
    ("without a mask", None, 0 * later, {"next_tokens": 0}),
):
    wanted = attention(query, key, value, 0.3, discarded.astype(bool))
    given = (None, None, None, None if mask is None else Tensor(mask))
    score = flash.FlashAttentionScore(head_num=4, scale_value=0.3, input_layout="BNSD", **told_by)
    told(f"attention {name}", score(Tensor(query), Tensor(key), Tensor(value), *given)[3], wanted)
    score = flash.FlashAttentionScore(head_num=4, scale_value=0.3, input_layout="BSH", **told_by)
    got = score(*map(Tensor, flat), *given)[3]
    told(f"attention {name}, flat", got, wanted.swapaxes(1, 2).reshape(2, 6, -1))
refused: tuple[dict[str, Any], ...] = ({"keep_prob": 0.9}, {"sparse_mode": 4}, {"next_tokens": 3}, {"pre_tokens": 3})
for arguments in refused:
    try:
        flash.FlashAttentionScore(head_num=4, **arguments)
    except ValueError as error:
        print("refused:", error)
score = flash.FlashAttentionScore(head_num=4)
for place, name in enumerate(("shift", "dropped", "padding", "mask", "prefix", "actual queries", "actual keys")):
    try:
        score(*map(Tensor, flat), *[None] * place, Tensor(later))
        print("taken:", name)
    except ValueError:
        print("refused:", name)


class Step:
    get_overflow_status: Any


scaling = Namespace(TrainOneStepWithLossScaleCell=Step)
kernels.replace_overflow(scaling)
finite, infinite = Tensor(made(3)), Tensor(np.array([1.0, np.inf], np.float32))
told("overflow", Step().get_overflow_status(None, (finite, infinite)), True)
told("no overflow", Step().get_overflow_status(None, (finite, finite)), False)
