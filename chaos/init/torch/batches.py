"""The batches of one epoch, by the data set and the loader of a script in PyTorch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from chaos.init.source import Call, Source, calls, last_word
from chaos.init.torch.libraries import SPREADING, imports_any
from chaos.init.values import Value, Values

_DRAWN = {"randn", "rand", "randint", "zeros", "ones", "empty"}
"""Functions of PyTorch that make a tensor of a given size."""


@dataclass(frozen=True)
class Batches:
    """Samples of a data set, and how a loader makes batches of them.

    ``spread`` says that each rank trains its share. ``whole`` says that a batch with fewer samples is left out.
    """

    samples: Value
    in_batch: Value
    spread: bool
    whole: bool

    def in_epoch(self, ranks: int) -> Value | None:
        """Return the number of batches that each rank trains in an epoch; None where there is none."""
        samples, size = self.samples.number or 0, self.in_batch.number or 1
        share = -(-samples // ranks) if self.spread else samples
        number = share // size if self.whole else -(-share // size)
        places = (*self.samples.places, *self.in_batch.places)
        return Value(number, places) if number else None


def read_batches(sources: Sequence[Source], values: Values) -> Batches | None:
    """Return the batches of the only loader, of the only data set that the script declares; None for any other job."""
    everything = [call for source in sources for call in calls(source)]
    loaders = [call for call in everything if call.name == "DataLoader"]
    samples = _samples(sources, values) or _of_tensors(everything, values)
    if len(loaders) != 1 or samples is None:
        return None
    (loader,) = loaders
    size = loader.argument(1, "batch_size")
    # PyTorch's own default is a batch of one sample.
    in_batch = Value(1, (loader.where,)) if size is None else values.number(size, loader.source)
    if in_batch is None or loader.argument(None, "batch_sampler") is not None:
        return None
    whole = loader.argument(None, "drop_last")
    sampled = loader.argument(3, "sampler") is not None and any(
        call.name == "DistributedSampler" for call in everything
    )
    spread = sampled or imports_any(sources, SPREADING)
    return Batches(samples, in_batch, spread=spread, whole=isinstance(whole, ast.Constant) and whole.value is True)


def _samples(sources: Sequence[Source], values: Values) -> Value | None:
    """Return the length of the only class with ``__len__`` and ``__getitem__``, which is made once."""
    sets = [
        (node, source)
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and {"__len__", "__getitem__"} <= set(_methods(node))
    ]
    if len(sets) != 1:
        return None
    (declared, source), *_ = sets
    made = values.called(declared.name)
    length = _methods(declared)["__len__"].body[-1]
    if len(made) != 1 or not isinstance(length, ast.Return):
        return None
    found = values.number(length.value, source) if isinstance(length.value, ast.Constant) else None
    return found or _given(made[0], _methods(declared).get("__init__"), length.value, values)


def _given(made: Call, init: ast.FunctionDef | None, length: ast.expr | None, values: Values) -> Value | None:
    """Return what the call gives for the attribute that ``__len__`` returns, if ``__init__`` takes it as it is."""
    if init is None or not isinstance(length, ast.Attribute) or last_word(length.value) != "self":
        return None
    names = [argument.arg for argument in init.args.args[1:]]
    for node in ast.walk(init):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Attribute) and target.attr == length.attr for target in node.targets
        ):
            if not isinstance(node.value, ast.Name) or node.value.id not in names:
                return None
            return values.number(made.argument(names.index(node.value.id), node.value.id), made.source)
    return None


def _of_tensors(everything: Sequence[Call], values: Values) -> Value | None:
    """Return the length of the first tensor of the only TensorDataset, if it is made of a given size."""
    sets = [call for call in everything if call.name == "TensorDataset"]
    if len(sets) != 1 or not sets[0].node.args:
        return None
    tensor, source = values.followed(sets[0].node.args[0], sets[0].source)
    if not isinstance(tensor, ast.Call) or last_word(tensor.func) not in _DRAWN:
        return None
    sizes = [size for size in tensor.args if not isinstance(size, ast.Starred)]
    if last_word(tensor.func) == "randint":
        sizes = [size for size in sizes if isinstance(size, ast.Tuple)]
    first = sizes[0] if sizes else None
    first = first.elts[0] if isinstance(first, ast.Tuple) and first.elts else first
    return values.number(first, source)


def _methods(declared: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in declared.body if isinstance(node, ast.FunctionDef)}
