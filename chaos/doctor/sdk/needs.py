"""MindSpore's needs of MindIO TFT: the names that it takes, its calls of them, and the functions that it registers."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.doctor.sdk.read import Source, in_classes, last_name, signature, sources, starred

ROOMS = ("train", "utils", "utils.py", "nn/optim")
"""The files of MindSpore 2.7 to 2.10 with fault tolerance (``TftHandle``, ``TrainFaultTolerance``, ``Model.train``)."""

_CATCH_ALL = {"Exception", "BaseException", "AttributeError", "TypeError", "ImportError"}


@dataclass(frozen=True)
class Use:
    """MindSpore takes a name, and perhaps calls it: ``positional`` is None if it does not, or if that is unknown.

    ``member`` is an enumeration's. ``module`` is the part of ``mindio_ttp`` from which the name is taken. A ``guarded``
    use may fail: MindSpore catches it.
    """

    module: str
    name: str
    where: str
    member: str = ""
    positional: int | None = None
    keywords: tuple[str, ...] = ()
    guarded: bool = False


@dataclass(frozen=True)
class RegisteredFunction:
    """A function that MindSpore registers with the SDK, under the registration's name or the name of an action."""

    name: str
    function: str
    signature: inspect.Signature
    where: str


@dataclass(frozen=True)
class Needs:
    """All needs of MindSpore."""

    uses: list[Use] = field(default_factory=list)
    registered: list[RegisteredFunction] = field(default_factory=list)


def needs_of(package: Path) -> Needs:
    """Read the MindSpore that is installed in this directory."""
    needs = Needs()
    for source in sources(package, ROOMS, b"tft"):
        _Reading(source, needs).read()
    return needs


class _Reading:
    """One file. The SDK is known by ``tft``, MindSpore's name for it, or by an import's own name."""

    def __init__(self, source: Source, needs: Needs) -> None:
        self.source = source
        self.needs = needs
        self.handles = {"tft"}
        self.imported: dict[str, tuple[str, str]] = {}
        placed = list(in_classes(source.tree))
        self.functions = {node.name: node for node, _ in placed if isinstance(node, ast.FunctionDef)}
        self.methods = {(inside, node.name): node for node, inside in placed if isinstance(node, ast.FunctionDef)}
        self.classes = {id(node): inside for node, inside in placed}

    def read(self) -> None:
        nodes = list(_walk(self.source.tree, guarded=False))
        for node, guarded in nodes:
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mindio_ttp":
                self.imports(node, guarded)
        called = {id(node.func) for node, _ in nodes if isinstance(node, ast.Call)}
        for node, guarded in nodes:
            if isinstance(node, ast.Call):
                self.call(node, guarded)
            elif isinstance(node, ast.Attribute) and id(node) not in called:
                self.attribute(node, guarded)

    def imports(self, node: ast.ImportFrom, guarded: bool) -> None:
        module = (node.module or "").partition(".")[2]
        # An ImportError that is raised again under another name guards nothing: the whole module is needed there.
        for alias in node.names:
            if not module:
                self.handles.add(alias.asname or alias.name)
            else:
                self.imported[alias.asname or alias.name] = (module, alias.name)
                self.needs.uses.append(Use(module, alias.name, self.source.place(node), guarded=guarded))

    def call(self, node: ast.Call, guarded: bool) -> None:
        target = self.target(node.func)
        if target is None:
            return
        module, name = target
        positional = None if starred(node) else len(node.args)
        keywords = tuple(keyword.arg for keyword in node.keywords if keyword.arg)
        where = self.source.place(node)
        self.needs.uses.append(Use(module, name, where, positional=positional, keywords=keywords, guarded=guarded))
        self.registers(name, node.args, self.classes.get(id(node)))

    def registers(self, name: str, arguments: list[ast.expr], inside: str | None) -> None:
        if not name.startswith("tft_register_") or not arguments:
            return
        function = arguments[0]
        if isinstance(function, ast.Constant) and len(arguments) > 1:  # the name of an agent's action
            name, function = str(function.value), arguments[1]
        if isinstance(function, ast.Name) and function.id in self.functions:
            node = self.functions[function.id]
            self.needs.registered.append(RegisteredFunction(name, node.name, signature(node), self.source.place(node)))
        elif isinstance(function, ast.Attribute) and last_name(function.value) in ("self", "cls", inside):
            self.registers_method(name, function, inside)

    def registers_method(self, name: str, function: ast.Attribute, inside: str | None) -> None:
        """Record ``self.handler``: the bound argument is not passed.

        An inherited handler, or one with another decorator, is unknown.
        """
        node = self.methods.get((inside, function.attr))
        decorators = {last_name(decorator) for decorator in node.decorator_list} if node is not None else {""}
        if node is None or inside is None or not decorators <= {"staticmethod", "classmethod"}:
            return
        of_class = last_name(function.value) == inside and not decorators
        handler_signature = signature(node)
        if decorators != {"staticmethod"} and not of_class:
            handler_signature = handler_signature.replace(parameters=list(handler_signature.parameters.values())[1:])
        self.needs.registered.append(RegisteredFunction(name, node.name, handler_signature, self.source.place(node)))

    def attribute(self, node: ast.Attribute, guarded: bool) -> None:
        where = self.source.place(node)
        target = self.target(node)
        if target is not None:
            self.needs.uses.append(Use(*target, where, guarded=guarded))
        elif isinstance(node.value, ast.Attribute) and last_name(node.value.value) in self.handles:
            enumeration = node.value.attr
            if enumeration[:1].isupper():
                self.needs.uses.append(Use("framework_ttp", enumeration, where, member=node.attr, guarded=guarded))

    def target(self, node: ast.expr) -> tuple[str, str] | None:
        """Return the module and name of the SDK that this expression stands for, if any."""
        if isinstance(node, ast.Attribute):
            if node.attr.startswith("tft_") and last_name(node.value) in self.handles:
                return "framework_ttp", node.attr
            return self.imported.get(node.attr) if last_name(node.value) == "self" else None
        return self.imported.get(node.id) if isinstance(node, ast.Name) else None


def _walk(node: ast.AST, guarded: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node, and whether an error there is caught and not raised again."""
    yield node, guarded
    for name, value in ast.iter_fields(node):
        inside = guarded or (isinstance(node, ast.Try) and name == "body" and _forgives(node))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, inside)


def _forgives(node: ast.Try) -> bool:
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []
        catches = not kinds or any(last_name(kind) in _CATCH_ALL for kind in kinds)
        if catches and not any(
            isinstance(inner, ast.Raise) for statement in handler.body for inner in ast.walk(statement)
        ):
            return True
    return False
