"""Signs in the source of a job that two runs of it may not have the same losses bit for bit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from chaos.init.source import Call, Source, calls, full_name, imports

_DROPS = re.compile(r"(?:\w*_)?drop_?(?:out|path)\w*", re.IGNORECASE)
_SEEDS = {"set_seed", "manual_seed", "seed_everything"}
_BUCKETS = {"DistributedDataParallel", "DDP"}
_UNUSED = "find_unused_parameters"
_DRAWS = re.compile(r"rand|randn|randint|normal|uniform|permutation|shuffle|choice|standard_normal")


def signs_without_seed(sources: Sequence[Source], framework: str) -> Iterator[str]:
    """Yield each sign that a seed at the start would remove; nothing where the script seeds its framework."""
    everything = [call for source in sources for call in calls(source)]
    if any(call.name in _SEEDS and not _of_generator(call) for call in everything):
        return
    if framework:
        yield "no set_seed: weights may begin differently in every run"
    for call in everything:
        shuffle = call.argument(None, "shuffle")
        if isinstance(shuffle, ast.Constant) and shuffle.value is True:
            yield f"{call.where}: shuffle=True without a seed"
            break


def signs_of_noise(sources: Sequence[Source]) -> Iterator[str]:
    """Yield each other sign with its place.

    Only a calibration measures whether the job is bit-exact (docs/guides/calibrate.md).
    """
    everything = [call for source in sources for call in calls(source)]
    drops = [call for call in everything if _DROPS.fullmatch(call.name) and not _is_zero(call.argument(None, "p"))]
    if drops:
        yield f"{drops[0].where}: {drops[0].name} draws at random in every step"
    if wrapped := [call for call in everything if call.name in _BUCKETS and call.argument(None, _UNUSED) is None]:
        yield (
            f"{wrapped[0].where}: {wrapped[0].name} without {_UNUSED}=True sums gradients in another order after the "
            "first step of each process, which shows from 3 ranks on"
        )
    for call in everything:
        owner = call.node.func
        if (
            isinstance(owner, ast.Attribute)
            and isinstance(owner.value, ast.Attribute)
            and owner.value.attr == "random"
            and _DRAWS.fullmatch(call.name)
            and not any(other.name == "seed" for other in everything)
        ):
            yield f"{call.where}: numpy.random.{call.name} without numpy.random.seed"
            break


def _of_generator(call: Call) -> bool:
    """Return whether a call seeds an object, as ``torch.Generator().manual_seed(0)``, and not a module."""
    owner = call.node.func.value if isinstance(call.node.func, ast.Attribute) else None
    if call.name != "manual_seed" or owner is None:
        return False
    return full_name(owner, call.source).partition(".")[0] not in imports(call.source)


def _is_zero(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0
