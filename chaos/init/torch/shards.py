"""The state that a script of PyTorch shards over its ranks, as far as its text says it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.init.conditions import Condition, conditions
from chaos.init.source import Call, Source, calls, full_name, last_word
from chaos.init.values import Value, Values

FULL, OPTIMIZER = "full", "optimizer"

_SHARDS = {"fully_shard": FULL, "FullyShardedDataParallel": FULL, "ZeroRedundancyOptimizer": OPTIMIZER}

_ONE_COPY = {"FULL_SHARD", "SHARD_GRAD_OP"}
_COPIES = {"HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}

_COMPARES: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}

_DEPTH = 4
"""Names that are followed from one to the next."""


@dataclass(frozen=True)
class Shards:
    """The shards of a job.

    ``kind`` is empty where the text names shards and leaves open whether they are made. ``sizes`` are those of a mesh
    of copies by shards, each None where it is not known. ``unclear`` says what the text does not tell.
    """

    kind: str
    where: str
    sizes: tuple[Value | None, Value | None] | None = None
    unclear: str = ""

    def copies(self, ranks: int) -> int | None:
        """Return the copies among so many ranks; None where the mesh does not say them, or does not fit the ranks."""
        if self.sizes is None:
            return None if self.unclear else 1
        copies, shards = (None if size is None else size.number for size in self.sizes)
        if copies is None and shards is not None:
            copies = ranks // shards
        fits = copies is not None and copies > 0 and ranks % copies == 0
        return copies if fits and shards in (None, ranks // (copies or 1)) else None


def read_shards(sources: Sequence[Source], values: Values) -> Shards | None:
    """Return the shards of a job; None where no line makes some."""
    sharding = [
        (call, _SHARDS[word])
        for source in sources
        for call in calls(source)
        if (word := _word(call)) in _SHARDS and not _keeps_whole(call)
    ]
    reached = [(call, kind) for call, kind in sharding if is_reached(call.node, call.source, values)]
    if not reached:
        open_calls = [call for call, _ in sharding if is_reached(call.node, call.source, values) is None]
        why = f"the text does not say whether {_word(open_calls[0])} is called" if open_calls else ""
        return Shards("", open_calls[0].where, unclear=why) if open_calls else _named_only(sources, sharding)
    call, kind = reached[0]
    if any(other != kind for _, other in reached):
        return Shards("", call.where, unclear="both the optimizer's state and all state are sharded")
    found = {_mesh(call, values) for call, _ in reached}
    sizes, unclear = found.pop() if len(found) == 1 else (None, "not all lines shard over the same mesh")
    return Shards(kind, f"{call.where}, {_word(call)}", sizes, unclear)


def is_reached(node: ast.AST, source: Source, values: Values) -> bool | None:
    """Return whether the tests round a line let it be executed; None where the text does not tell."""
    if any(_holds(test, values) is False for test in conditions(node, source, values, 0)):
        return False
    return True if all(_holds(test, values) for test in conditions(node, source, values)) else None


def _named_only(sources: Sequence[Source], sharding: Sequence[object]) -> Shards | None:
    """Return the shards of which a name is used and no call was found: ``wrap(model, fully_shard)``."""
    for source in sources:
        for node in ast.walk(source.tree):
            outer = source.parents.get(node)
            if isinstance(outer, ast.Call) and outer.func is node:
                continue
            if isinstance(node, ast.Name) and full_name(node, source).rpartition(".")[2] in _SHARDS and not sharding:
                return Shards("", source.where(node), unclear=f"no line calls {node.id} by itself")
    return None


def _word(call: Call) -> str:
    """Return the last word of the called name, where it is one of PyTorch's."""
    name = full_name(call.node.func, call.source)
    return name.rpartition(".")[2] if name.startswith("torch.") else ""


def _keeps_whole(call: Call) -> bool:
    strategy = _given(call, 2, "sharding_strategy")
    return _word(call) == "FullyShardedDataParallel" and strategy is not None and last_word(strategy) == "NO_SHARD"


def _given(call: Call, position: int | None, *names: str) -> ast.expr | None:
    """Return an argument that is not None."""
    node = call.argument(position, *names)
    return None if isinstance(node, ast.Constant) and node.value is None else node


def _mesh(call: Call, values: Values) -> tuple[tuple[Value | None, Value | None] | None, str]:
    """Return the sizes of copies and shards, None for a single copy; and what the text does not tell of it."""
    word = _word(call)
    if any(keyword.arg is None for keyword in call.node.keywords) and word != "ZeroRedundancyOptimizer":
        return None, "** may hold a mesh"
    group = _given(call, None if word == "fully_shard" else 1, "process_group")
    if word == "ZeroRedundancyOptimizer":
        group = call.argument(None, "process_group")
    if group is not None:
        return None, "a process group is given, which may hold some ranks only"
    mesh = _given(call, None, "mesh", "device_mesh")
    strategy = _given(call, 2, "sharding_strategy") if word == "FullyShardedDataParallel" else None
    if strategy is not None and last_word(strategy) not in _ONE_COPY | _COPIES:
        return None, f"{ast.unparse(strategy)[:40]} is not known"
    if mesh is None:
        hybrid = strategy is not None and last_word(strategy) in _COPIES
        return None, f"{last_word(strategy)} without a mesh: every node has a copy" if hybrid and strategy else ""
    made = _assigned(mesh, call.source, values)
    if not isinstance(made, ast.Call) or last_word(made.func) != "init_device_mesh":
        return None, f"the mesh {ast.unparse(mesh)[:40]} is not read"
    shape = Call(made, "init_device_mesh", call.source).argument(1, "mesh_shape")
    shape = None if shape is None else _assigned(shape, call.source, values)
    if not isinstance(shape, ast.Tuple) or len(shape.elts) not in (1, 2):
        return None, f"the shape of the mesh {ast.unparse(mesh)[:40]} is not read"
    if len(shape.elts) == 1:
        return None, ""
    copies, shards = (values.number(size, call.source) for size in shape.elts)
    return (copies, shards), ""


def _assigned(node: ast.expr, source: Source, values: Values, depth: int = _DEPTH) -> ast.expr | None:
    """Return what a name of the same function or of the module stands for, where only one line can have set it."""
    if not isinstance(node, ast.Name):
        return node
    found = [(made, is_reached(made, source, values)) for made in _targets(node, source) if made.lineno <= node.lineno]
    possible = [made for made, reached in found if reached is not False]
    if len(possible) != 1 or depth <= 0 or any(reached is None for _, reached in found):
        return None
    return _assigned(possible[0], source, values, depth - 1)


def _targets(node: ast.Name, source: Source) -> Iterator[ast.expr]:
    scopes = (source.function_of(node), None)
    for made in ast.walk(source.tree):
        if not isinstance(made, ast.Assign) or source.function_of(made) not in scopes:
            continue
        if any(isinstance(target, ast.Name) and target.id == node.id for target in made.targets):
            yield made.value


def _holds(condition: Condition, values: Values) -> bool | None:
    """Return whether a condition is met; None where the text does not tell."""
    truth = _truth(condition.test, condition.source, values)
    return None if truth is None else truth == condition.holds


def _truth(test: ast.expr, source: Source, values: Values) -> bool | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(test.operand, source, values)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        if last_word(test.left) == "__name__":
            return True
        left, right = values.of(test.left, source), values.of(test.comparators[0], source)
        compare = _COMPARES.get(type(test.ops[0]))
        if left is None or right is None or compare is None:
            return None
        try:
            return bool(compare(left.value, right.value))
        except TypeError:
            return None
    value = values.of(test, source)
    return None if value is None else bool(value.value)
