"""The lines of a job that save and load checkpoints: form, place, interval, and the ranks that save."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chaos.init.conditions import Condition, Unit, asks_rank, callers, conditions, every, of_rank_0
from chaos.init.source import Call, Source, calls, full_name, imports, last_word
from chaos.init.torch.owners import (
    OF_ACCELERATE,
    assigned_name,
    is_of_dcp,
    is_of_fabric,
    is_of_others,
    is_of_torch,
)
from chaos.init.values import Value, Values

_RANK_IN_PATH = re.compile(r"\{[^}]*rank[^}]*\}", re.IGNORECASE)

_EPOCH_END = {"on_train_epoch_end", "epoch_end"}

_STEPS = "chaos_steps"

_BY_LINES = {"saved", "saving", "loaded"}
"""Functions of chaos_steps that report a save or a load."""

_OF_TORCH = {"save", "load", "async_save"}
"""Functions of the module torch and of its DCP; elsewhere the words mean other things."""

_RECORDED = {"save_checkpoint", "ModelCheckpoint", "save", "async_save", "save_state", "saved", "saving"}
"""Saves that chaos records: those of MindSpore and PyTorch, and those that a line of chaos_steps reports."""

_BY_CLASS = "ModelCheckpoint"
"""MindSpore's callback that saves by itself. Classes of a job inherit from it."""

_SAVES = {
    "save_checkpoint": (1, ("ckpt_file_name",)),
    "ModelCheckpoint": (1, ("directory",)),
    "save_file": (1, ("filename",)),
    "save": (1, ("f",)),
    "save_state": (0, ("output_dir",)),
    "async_save": (None, ("checkpoint_id",)),
    "savez": (0, ("file",)),
    "savez_compressed": (0, ("file",)),
    "saved": (0, ("path",)),
    "saving": (0, ("path",)),
}
"""Calls that save, with the place and the name of the argument that says where."""

_OF_DCP = (None, ("checkpoint_id",))

_OF_FABRIC = (0, ("path",))
"""The path of ``save`` and ``load`` of Lightning's Fabric."""

_LOADS = {
    "load_checkpoint": (0, ("ckpt_file_name",)),
    "load": (0, ("f",)),
    "load_state": (0, ("input_dir",)),
    "load_file": (0, ("filename",)),
    "safe_open": (0, ("filename",)),
    "load_checkpoint_async": (0, ("ckpt_file_name",)),
    "load_distributed_checkpoint": (1, ("checkpoint_filenames",)),
    "loaded": (0, ("path",)),
}
"""Calls that load."""


@dataclass(frozen=True)
class Save:
    """A line that saves. ``interval`` is in ``unit``; ``by_class`` is the line of a ModelCheckpoint."""

    call: Call
    where: str
    form: str
    place: str
    interval: Value | None
    unit: Unit
    rank_0: str
    """The place that lets rank 0 alone save; nothing where no such line was found."""

    by_rank: bool = False
    """Whether a test on the way looks at the rank: some ranks may not save."""

    @property
    def names_rank(self) -> bool:
        """Whether the name of the file or of its directory has the rank in it."""
        return bool(_RANK_IN_PATH.search(self.place))

    @property
    def recorded(self) -> bool:
        """Whether chaos records the save as the script is."""
        return self.call.name in _RECORDED

    @property
    def outside(self) -> bool:
        """Whether the file is saved outside the directory that the job works in."""
        return self.place.startswith(("/", "~", "..", "{__file__", "{os.path.dirname(", "{Path(__file__)"))


@dataclass(frozen=True)
class Load:
    """A line that loads a checkpoint, with the tests that lead to it."""

    call: Call
    where: str
    tests: tuple[Condition, ...]


def saves(sources: Sequence[Source], values: Values) -> list[Save]:
    """Return the lines that save a checkpoint of the training, those with a known interval first."""
    all_saves = []
    takes, initialises = _by_class(sources)
    for source in sources:
        saving = _with_safetensors(source)
        lines = _STEPS in imports(source)
        for call in _with_classes(source, takes, initialises):
            if call.name not in _SAVES or (call.name in ("save_file",) and not saving) or _in_own(call):
                continue
            if (call.name in _BY_LINES and not lines) or (call.name in _OF_TORCH and not is_of_torch(call)):
                continue
            if is_of_others(call):
                continue
            all_saves.append(_save(call, values))
    recorded = [save for save in all_saves if save.recorded]
    chosen = recorded or all_saves
    return sorted(chosen, key=lambda save: (save.interval is None, save.where))


def loads(sources: Sequence[Source], values: Values) -> list[Load]:
    """Return the lines that load a checkpoint."""
    return [
        Load(call, call.where, tuple(conditions(call.node, call.source, values)))
        for source in sources
        for call in calls(source)
        if call.name in _LOADS and not (call.name in ("load_file", "safe_open") and not _with_safetensors(source))
        if call.name not in _BY_LINES or _STEPS in imports(source)
        if call.name not in _OF_TORCH or is_of_torch(call)
        if not is_of_others(call)
    ]


def load_place(load: Load, values: Values) -> str:
    """Return the text of the path that a line loads."""
    return values.text(loaded_path(load), load.call.source)


def loaded_path(load: Load) -> ast.expr | None:
    """Return the path that a line loads, as it is written."""
    return _path(load.call, _LOADS)


def _path(call: Call, known: Mapping[str, tuple[int | None, tuple[str, ...]]]) -> ast.expr | None:
    """Return the path that a call is given; ``known`` has the place and the name of this argument."""
    position, names = _OF_FABRIC if is_of_fabric(call) else _OF_DCP if is_of_dcp(call) else known[call.name]
    return call.argument(position, *names)


def _save(call: Call, values: Values) -> Save:
    path = _path(call, _SAVES)
    place = values.text(path, call.source)
    tests = list(conditions(call.node, call.source, values))
    rank_0 = next((test.source.where(test.test) for test in tests if of_rank_0(test)), "")
    if call.name == _BY_CLASS:
        interval, unit, form = _of_model_checkpoint(call, values)
        place = place if path is not None else "./"
    else:
        interval, unit = _of_tests(call, tests, values)
        form = "safetensors" if "safetensors" in ast.dump(call.node) or call.name == "save_file" else "ckpt"
        form = "npz" if call.name.startswith("savez") else form
        form = "torch.save" if call.name in _OF_TORCH else form
        form = "DCP" if is_of_dcp(call) else form
        form = _STEPS if call.name in _BY_LINES else form
    form = "Lightning" if is_of_fabric(call) else OF_ACCELERATE.get(call.name, form)
    by_rank = call.name in OF_ACCELERATE or is_of_fabric(call) or any(map(asks_rank, tests))
    return Save(call, call.where, form, place, interval, unit, rank_0, by_rank)


def _by_class(sources: Sequence[Source]) -> tuple[set[str], set[str]]:
    """Return the classes that take the arguments of a ModelCheckpoint, and those that give them in their __init__."""
    classes = [
        (node, {full_name(base, source).rpartition(".")[2] for base in node.bases})
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    ]
    takes, found = {_BY_CLASS}, True
    while found:
        inherit = {node.name for node, bases in classes if bases & takes and _passes_arguments_on(node)}
        found = bool(inherit - takes)
        takes |= inherit
    return takes, {node.name for node, bases in classes if bases & takes and node.name not in takes}


def _passes_arguments_on(node: ast.ClassDef) -> bool:
    """Return whether a class has no __init__ of its own, or one that passes ``*args`` or ``**kwargs`` on."""
    for function in node.body:
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            return any(_is_super_init(call) and _passes_on(call) for call in ast.walk(function))
    return True


def _with_classes(source: Source, takes: set[str], initialises: set[str]) -> Iterator[Call]:
    """Yield the calls of a file. Those that give a ModelCheckpoint its arguments bear its name, whatever they say."""
    imported = (node for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom))
    real = {alias.asname: alias.name for node in imported for alias in node.names if alias.asname}
    for call in calls(source):
        outer = next((node for node in source.ancestors(call.node) if isinstance(node, ast.ClassDef)), None)
        of_class = outer is not None and outer.name in initialises and _is_super_init(call.node)
        yield replace(call, name=_BY_CLASS) if real.get(call.name, call.name) in takes or of_class else call


def _is_super_init(node: ast.AST) -> bool:
    """Return whether a node is the call ``super().__init__(…)``."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "__init__":
        return False
    return isinstance(node.func.value, ast.Call) and last_word(node.func.value.func) == "super"


def _passes_on(node: ast.AST) -> bool:
    """Return whether a call has ``*arguments`` or ``**arguments``, which its text does not tell."""
    return isinstance(node, ast.Call) and (
        any(isinstance(argument, ast.Starred) for argument in node.args)
        or any(keyword.arg is None for keyword in node.keywords)
    )


def _of_model_checkpoint(call: Call, values: Values) -> tuple[Value | None, Unit, str]:
    """Return interval, unit and form of a ModelCheckpoint, from its CheckpointConfig."""
    config = call.argument(2, "config")
    if isinstance(config, ast.Name):
        made = [candidate for candidate in values.called("CheckpointConfig") if assigned_name(candidate) == config.id]
        config = made[0].node if len(made) == 1 else None
    if config is None and _passes_on(call.node):
        return None, Unit.STEP, "ckpt"
    if not isinstance(config, ast.Call):
        # ModelCheckpoint without a CheckpointConfig saves after every step (MindSpore, CheckpointConfig).
        default = Value(1, (f"{call.where}, without a CheckpointConfig",))
        return (default if call.argument(2, "config") is None else None), Unit.STEP, "ckpt"
    made_by = Call(config, "CheckpointConfig", call.source)
    form = made_by.argument(None, "format")
    by_seconds = made_by.argument(1, "save_checkpoint_seconds")
    steps = made_by.argument(0, "save_checkpoint_steps")
    if steps is None:
        interval = None if by_seconds is not None else Value(1, (f"{made_by.where}, the default of CheckpointConfig",))
    else:
        interval = values.number(steps, call.source)
        interval = interval and Value(interval.value, (made_by.where, *interval.places))
    return interval, Unit.STEP, str(form.value) if isinstance(form, ast.Constant) else "ckpt"


def _of_tests(call: Call, tests: Sequence[Condition], values: Values) -> tuple[Value | None, Unit]:
    for test in tests:
        if (interval := every(test)) is not None:
            number = values.number(interval[0], test.source)
            return number and Value(number.value, (test.source.where(test.test), *number.places)), interval[1]
    if _once_an_epoch(call, values):
        return Value(1, (call.where,)), Unit.EPOCH
    return None, Unit.STEP


def _once_an_epoch(call: Call, values: Values) -> bool:
    """Return whether a save without a test comes once in every epoch: in a loop over epochs, or at an epoch's end."""
    places: list[tuple[ast.AST, Source]] = [(call.node, call.source)]
    for _ in range(3):
        further: list[tuple[ast.AST, Source]] = []
        for node, source in places:
            for outer in source.ancestors(node):
                if isinstance(outer, ast.For):
                    return "epoch" in ast.unparse(outer.target).lower()
                if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    if outer.name in _EPOCH_END:
                        return True
                    further += [(caller.node, caller.source) for caller in callers(outer, source, values)]
                    break
        places = further
    return False


def _with_safetensors(source: Source) -> bool:
    return "safetensors" in imports(source)


def _in_own(call: Call) -> bool:
    """Return whether the call is that of a function of the script itself, whose own lines are looked at."""
    owner = call.node.func
    defined = {node.name for node in ast.walk(call.source.tree) if isinstance(node, ast.FunctionDef)}
    return isinstance(owner, ast.Name) and owner.id in defined
