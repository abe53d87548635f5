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


def attention(query: Any, key: Any, value: Any, scale: float) -> Any:
    key, value = (np.repeat(one, query.shape[1] // one.shape[1], 1) for one in (key, value))
    scores = query @ key.swapaxes(2, 3) * scale
    scores[..., np.triu(np.ones(scores.shape[2:], bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


flash = Namespace()
kernels.replace_attention(flash)
query, key, value = made(2, 4, 6, 8), made(2, 2, 6, 8), made(2, 2, 6, 8)
wanted = attention(query, key, value, 0.3)
score = flash.FlashAttentionScore(head_num=4, scale_value=0.3, input_layout="BNSD")
told("attention", score(Tensor(query), Tensor(key), Tensor(value), None)[3], wanted)
flat = [Tensor(one.swapaxes(1, 2).reshape(2, 6, -1)) for one in (query, key, value)]
score = flash.FlashAttentionScore(head_num=4, scale_value=0.3, input_layout="BSH")
told("attention, flat", score(*flat, None)[3], wanted.swapaxes(1, 2).reshape(2, 6, -1))
try:
    flash.FlashAttentionScore(head_num=4, keep_prob=0.9)
except ValueError as error:
    print("refused:", error)


class Step:
    get_overflow_status: Any


scaling = Namespace(TrainOneStepWithLossScaleCell=Step)
kernels.replace_overflow(scaling)
finite, infinite = Tensor(made(3)), Tensor(np.array([1.0, np.inf], np.float32))
told("overflow", Step().get_overflow_status(None, (finite, infinite)), True)
told("no overflow", Step().get_overflow_status(None, (finite, finite)), False)
