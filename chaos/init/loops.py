"""The training of a job: ``Model.train`` or a loop of its own, its steps, and what makes its steps hard to count."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.init.source import Call, Source, calls, imports, last_word
from chaos.init.torch.owners import LIGHTNING
from chaos.init.values import Value, Values

_GRADIENTS = {"value_and_grad", "grad", "GradOperation", "backward"}
_STEP_CELLS = re.compile(r"TrainOneStep\w*Cell|\w*TrainOneStep\w*")
_OPTIMIZERS = re.compile(
    r"(?:Momentum|SGD|Adam\w*|Lamb|LARS|RMSProp|Adagrad|Ftrl|ProximalAdagrad|ASGD|Rprop|LazyAdam|Adafactor|ZeroRedundancyOptimizer)"
)
_STEPS = re.compile(r"(?:max|total|train|num|n)?_?(?:train(?:ing)?|max|total|num)?_?(?:steps?|iters?|iterations?)")
_EPOCHS = re.compile(r"(?:max|total|train|num|n)?_?(?:train|num)?_?epochs?(?:_?(?:num|size))?")
_PER_EPOCH = re.compile(r"(?:steps?|batches|iters?)_per_epoch|per_epoch")
_ACCUMULATES = re.compile(r"accum|grad_acc", re.IGNORECASE)
_BEHIND_THE_UPDATE = {"Broadcast", "AllGather", "broadcast", "all_gather", "all_gather_into_tensor"}
_LINES = {"step_begins", "step_ends", "state_is"}
_STEP_NAME = re.compile(
    r"train_?(?:one_?)?(?:step|net|network|cell)\w*|(?:one_?)?step_?fn|forward_backward", re.IGNORECASE
)


@dataclass(frozen=True)
class Loop:
    """The training loop.

    ``form`` is ``Model.train``, ``own`` or nothing. ``lines`` says that the script reports its steps by chaos_steps.
    ``counted`` is false where hooks may be unable to count the steps; ``why_not`` then says what is in the way.
    """

    form: str
    where: str
    steps: Value | None
    epochs: Value | None
    steps_per_epoch: Value | None
    lines: bool = False
    why_not: tuple[str, ...] = ()
    variable: str = ""
    sinks: Value | None = None
    optimizers: tuple[str, ...] = ()
    """The places of the optimizers that are made side by side."""

    @property
    def several_optimizers(self) -> str:
        """Return in words that a step may end with the update of any of them; nothing for a single optimizer."""
        if len(self.optimizers) < 2:
            return ""
        return f"{len(self.optimizers)} optimizers ({', '.join(self.optimizers[:3])})"


def read_loop(sources: Sequence[Source], values: Values) -> Loop:
    """Return the training loop of a job."""
    everything = [call for source in sources for call in calls(source)]
    lines = any(call.name in _LINES for call in everything)
    per_epoch = _first(values.named(lambda name: bool(_PER_EPOCH.fullmatch(name.lower()))))
    steps = _first(values.named(lambda name: bool(_STEPS.fullmatch(name.lower().strip("_")))))
    trains = [call for call in everything if _is_model_train(call, values)]
    if trains:
        call = trains[0]
        epochs = values.number(call.argument(0, "epoch"), call.source)
        sinks = values.of(call.argument(None, "dataset_sink_mode"), call.source)
        sink_size = values.number(call.argument(None, "sink_size"), call.source)
        sinking = sink_size if sinks is not None and sinks.value is True else None
        total = steps or product(epochs, per_epoch)
        return Loop("Model.train", call.where, total, epochs, per_epoch, lines=lines, sinks=sinking)
    inner = _training_loop(sources, everything)
    gradients = [call for call in everything if call.name in _GRADIENTS or _STEP_CELLS.fullmatch(call.name)]
    if inner is None and not gradients and not lines:
        return Loop("", "", steps, None, per_epoch)
    epochs = _first(values.named(lambda name: bool(_EPOCHS.fullmatch(name.lower()))))
    optimizers = _side_by_side(everything)
    hindrances = tuple(_hindrances(sources, everything))
    if inner is None:
        where = gradients[0].where if gradients else ""
        return Loop(
            "own",
            where,
            steps,
            epochs,
            per_epoch,
            lines=lines,
            why_not=hindrances,
            optimizers=tuple(call.where for call in optimizers),
        )
    node, source = inner
    counted, variable, outer_epochs = _counts(node, source, values)
    epochs = outer_epochs or epochs
    return Loop(
        "own",
        source.where(node),
        counted or steps or product(epochs, per_epoch),
        epochs,
        per_epoch,
        lines=lines,
        why_not=hindrances,
        variable=variable,
        optimizers=tuple(call.where for call in optimizers),
    )


def _is_model_train(call: Call, values: Values) -> bool:
    owner = call.node.func
    if call.name not in ("train", "fit") or not isinstance(owner, ast.Attribute):
        return False
    if imports(call.source) & LIGHTNING:
        return False
    named = {keyword.arg for keyword in call.node.keywords}
    if named & {"callbacks", "dataset_sink_mode", "epoch", "train_dataset", "initial_epoch"}:
        return True
    models = {last_word(made) for model in values.called("Model") if (made := _target(model)) is not None}
    return last_word(owner.value) in models or len(call.node.args) >= 2


def _target(call: Call) -> ast.expr | None:
    parent = call.source.parents.get(call.node)
    return parent.targets[0] if isinstance(parent, ast.Assign) else None


def _training_loop(sources: Sequence[Source], everything: Sequence[Call]) -> tuple[ast.For | ast.While, Source] | None:
    """Return the innermost loop that calls a function which trains."""
    training = {"step_begins", *_training_names(sources, everything)}
    for call in everything:
        if call.name not in training and not _STEP_NAME.fullmatch(call.name):
            continue
        for outer in call.source.ancestors(call.node):
            if isinstance(outer, (ast.For, ast.While)):
                return outer, call.source
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
    return None


def _training_names(sources: Sequence[Source], everything: Sequence[Call]) -> set[str]:
    """Return the names of functions and cells that compute a gradient or make an update."""
    names = set()
    for call in everything:
        if call.name in _GRADIENTS or _STEP_CELLS.fullmatch(call.name) or call.name in ("jit", "ms_function"):
            names |= _assigned(call)
    for _ in range(2):
        for source in sources:
            for function in ast.walk(source.tree):
                if isinstance(function, ast.FunctionDef) and any(
                    isinstance(node, ast.Call) and last_word(node.func) in names for node in ast.walk(function)
                ):
                    names.add(function.name)
    return names - {"main", "train", "run", "__init__"} | (names & {"backward"})


def _assigned(call: Call) -> set[str]:
    for outer in call.source.ancestors(call.node):
        if isinstance(outer, ast.Assign):
            return {last_word(target) for target in outer.targets} - {""}
        if isinstance(outer, ast.stmt):
            break
    return set()


def _counts(node: ast.For | ast.While, source: Source, values: Values) -> tuple[Value | None, str, Value | None]:
    """Return the steps of a loop, the name of its counter, and the number of epochs round it."""
    epochs = None
    for outer in source.ancestors(node):
        if isinstance(outer, ast.For) and (end := _range_end(outer, source, values)) is not None:
            epochs = end
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    if isinstance(node, ast.While):
        return _while_end(node, source, values), _counter(node.test), None
    variable = node.target.elts[0] if isinstance(node.target, ast.Tuple) and _is_enumerate(node.iter) else node.target
    name = variable.id if isinstance(variable, ast.Name) else ""
    steps = _range_end(node, source, values)
    if steps is not None and epochs is not None:
        return product(epochs, steps), name, epochs
    return steps, name if steps is not None or _is_enumerate(node.iter) else "", epochs


def _range_end(node: ast.For, source: Source, values: Values) -> Value | None:
    """Return the number of rounds of ``for step in range(…)``, counted from the beginning of the training."""
    made = node.iter
    if not isinstance(made, ast.Call) or last_word(made.func) not in ("range", "trange") or not made.args:
        return None
    end = values.number(made.args[min(1, len(made.args) - 1)], source)
    if end is None or end.number is None:
        return None
    begin = made.args[0] if len(made.args) > 1 else None
    from_one = begin is not None and (_adds_one(begin) or _adds_one(made.args[1]) or _is_one(begin))
    return Value(end.number - int(from_one), (source.where(node), *end.places)) if end.number > 1 else None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _adds_one(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and (_is_one(node.left) or _is_one(node.right))


def _while_end(node: ast.While, source: Source, values: Values) -> Value | None:
    test = node.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Lt, ast.LtE)):
        return None
    end = values.number(test.comparators[0], source)
    return end and Value(end.value, (source.where(node), *end.places))


def _counter(test: ast.expr) -> str:
    return last_word(test.left) if isinstance(test, ast.Compare) else ""


def _is_enumerate(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_word(node.func) == "enumerate"


def _hindrances(sources: Sequence[Source], everything: Sequence[Call]) -> Iterator[str]:
    """Yield what may keep the agent from counting the steps of a loop by itself (docs/guides/own-loops.md).

    In PyTorch a step ends with the update, of any optimizer and however many gradients are accumulated for it.
    """
    imported = set().union(*(imports(source) for source in sources))
    by_update = "torch" in imported and "mindspore" not in imported
    for source in () if by_update else sources:
        for node in ast.walk(source.tree):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if _ACCUMULATES.search(name):
                yield f"gradients seem to be accumulated ({source.where(node)}, {name})"
                break
    for call in everything:
        if call.name in ("DynamicLossScaler", "all_finite"):
            yield f"a loss scale may skip steps ({call.where}, {call.name})"
            break
    for call in everything:
        if call.name in _BEHIND_THE_UPDATE:
            yield f"weights seem to be handed on behind the update ({call.where}, {call.name})"
            break
    if not by_update and not any(_OPTIMIZERS.fullmatch(call.name) for call in everything):
        yield "no known optimizer of MindSpore is made"


def _side_by_side(everything: Sequence[Call]) -> list[Call]:
    """Return the calls that make optimizers; of several for the same name the last, which takes their place."""
    by_name: dict[str, Call] = {}
    for call in everything:
        if _OPTIMIZERS.fullmatch(call.name) and not _is_nested(call):
            target = _target(call)
            by_name[f"{call.where}:{call.node.col_offset}" if target is None else ast.unparse(target)] = call
    return list(by_name.values())


def _is_nested(call: Call) -> bool:
    """Return whether an optimizer is made in a branch that excludes the others."""
    return any(isinstance(outer, ast.If) for outer in call.source.ancestors(call.node))


def _first(named: list[tuple[str, Value]]) -> Value | None:
    return named[0][1] if named else None


def product(first: Value | None, second: Value | None) -> Value | None:
    """Return the product of two numbers, with the places of both; None where one is not known."""
    if first is None or second is None or first.number is None or second.number is None:
        return None
    return Value(first.number * second.number, (*first.places, *second.places))
