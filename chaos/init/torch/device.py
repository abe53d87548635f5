"""The device that a script of PyTorch takes without an option for it, as its lines say it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from chaos.init.device import ASCEND, GPU, Device
from chaos.init.source import Source, calls, full_name

_SIGNS = re.compile(r"(cuda|npu)(:\d*)?|(?:cpu:gloo,)?(?:cuda:|npu:)?(nccl|hccl)")
"""Texts that name a device, or its collectives."""

_NAMES = {"cuda": GPU, "nccl": GPU, "npu": ASCEND, "hccl": ASCEND}

_IF_THERE = re.compile(r"torch\.(cuda|npu|accelerator)\.(is_available|device_count)|torch_npu\.npu\.is_available")


def read_torch_device(sources: Sequence[Source]) -> Device | None:
    """Return the first device but the CPU that a line takes; None where no line does."""
    named = (full_name(call.node.func, source) for source in sources for call in calls(source))
    if_there = any(_IF_THERE.fullmatch(name) for name in named)
    found = (Device(name, where, if_there=if_there) for source in sources for name, where in _taken(source))
    return next(found, None)


def _taken(source: Source) -> Iterator[tuple[str, str]]:
    """Yield devices that the lines of a file take, with the place."""
    compared = set(_only_compared(source))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in compared:
            match = _SIGNS.fullmatch(node.value)
            if match is not None:
                yield _NAMES[match[1] or match[3]], source.where(node)
    for call in calls(source):
        name = full_name(call.node.func, source)
        if name in ("torch.cuda.set_device", "torch.npu.set_device"):
            yield GPU if ".cuda." in name else ASCEND, call.where
        elif call.name == "cuda" and isinstance(call.node.func, ast.Attribute):
            yield GPU, call.where


def _only_compared(source: Source) -> Iterator[int]:
    """Yield the texts that a line compares with, or names as choices of an option: it need not take that device."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare) or (isinstance(node, ast.keyword) and node.arg in ("choices", "help")):
            yield from (id(part) for part in ast.walk(node) if isinstance(part, ast.Constant))
