"""The interface of MindIO TFT: its names with their signatures, and its arguments to registered functions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from chaos.doctor.sdk.read import Source, calls_in_classes, in_classes, last_name, signature, sources, starred

_LIMIT = 8  # how often a name may be passed on from file to file


@dataclass(frozen=True)
class Offer:
    """A name of the SDK. ``signature`` is None, ``members`` is empty, if the files do not show them."""

    where: str
    signature: inspect.Signature | None = None
    members: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HandlerCall:
    """The arguments of a registered function. ``surely``: its keeper calls it, not any object with such a name."""

    arguments: int
    where: str
    keywords: tuple[str, ...] = ()
    surely: bool = True


@dataclass(frozen=True)
class Offered:
    """``names`` by module of ``mindio_ttp``; ``calls`` by the registration's name, or that of an agent's action."""

    names: dict[str, dict[str, Offer]] = field(default_factory=dict)
    calls: dict[str, list[HandlerCall]] = field(default_factory=dict)


def offered_by(package: Path) -> Offered:
    """Read the ``mindio_ttp`` that is installed in this directory."""
    files = {source.name: source for source in sources(package, (".",), b"")}
    modules = {name: _module(package, files, name) for name in ("framework_ttp", "controller_ttp")}
    names = {name: _names(source, package, files) for name, source in modules.items() if source is not None}
    return Offered(names, {**_passed_to_handlers(files), **_passed_to_actions(files)})


def _module(package: Path, files: dict[str, Source], dotted: str) -> Source | None:
    path = f"{package.name}/{dotted.replace('.', '/')}"
    return files.get(f"{path}.py") or files.get(f"{path}/__init__.py")


def _names(source: Source, package: Path, files: dict[str, Source]) -> dict[str, Offer]:
    """Return the names of a module, each followed to its definition."""
    names: dict[str, Offer] = {}
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom):
            origin = _origin(source, node, package, files)
            for alias in node.names:
                offer = _defined(origin, alias.name, package, files) if origin else None
                names[alias.asname or alias.name] = offer or Offer(source.place(node))
        else:
            names.update(_definitions(source, node))
    return names


def _defined(source: Source, name: str, package: Path, files: dict[str, Source], depth: int = 0) -> Offer | None:
    """Return the definition of a name in a file, through any number of files that pass it on."""
    offer: Offer | None = None
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and depth < _LIMIT:
            for alias in node.names:
                if (alias.asname or alias.name) == name and (origin := _origin(source, node, package, files)):
                    offer = _defined(origin, alias.name, package, files, depth + 1) or Offer(source.place(node))
        else:
            offer = _definitions(source, node).get(name, offer)
    return offer


def _definitions(source: Source, node: ast.stmt) -> dict[str, Offer]:
    if isinstance(node, ast.FunctionDef):
        # A decorated function may be called otherwise than it looks.
        return {node.name: Offer(source.place(node), None if node.decorator_list else signature(node))}
    if isinstance(node, ast.ClassDef):
        members = [
            target for statement in node.body if isinstance(statement, ast.Assign) for target in statement.targets
        ]
        return {node.name: Offer(source.place(node), members=frozenset(filter(None, map(last_name, members))))}
    if isinstance(node, ast.Assign):
        return {name: Offer(source.place(node)) for name in map(last_name, node.targets) if name}
    return {}


def _origin(source: Source, node: ast.ImportFrom, package: Path, files: dict[str, Source]) -> Source | None:
    """Return the file of an import.

    The vendor's package puts its own directories on the path, so any depth is searched.
    """
    dotted = node.module or ""
    if module := _module(package, files, dotted):
        return module
    file_name = f"{dotted.rpartition('.')[2]}.py"
    beside = f"{source.name.rpartition('/')[0]}/{file_name}"
    return files.get(beside) or next((file for name, file in files.items() if name.endswith(f"/{file_name}")), None)


def _passed_to_handlers(files: dict[str, Source]) -> dict[str, list[HandlerCall]]:
    """Follow each ``tft_register_…`` from the function that is registered, to the attribute, to the calls of it."""
    kept = {method: (source, at) for source in files.values() for method, at in _kept_functions(source)}
    calls: dict[tuple[str, str | None, str], list[HandlerCall]] = {}
    for source in files.values():
        for call, inside in calls_in_classes(source.tree):
            if isinstance(call.func, ast.Attribute) and not starred(call):
                receiver = inside if last_name(call.func.value) == "self" else None
                keywords = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
                passed = HandlerCall(len(call.args), source.place(call), keywords)
                calls.setdefault((source.name, receiver, call.func.attr), []).append(passed)
    handlers = {}
    for source in files.values():
        for node in source.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("tft_register_") and node.args.args:
                methods = [last_name(call.func) for call in _calls(node) if _hands(call, node.args.args[0].arg)]
                keepers = [kept[method] for method in methods if method in kept]
                if by_keepers := [call for keeper, at in keepers for call in _passed_by(keeper, *at, calls)]:
                    handlers[node.name] = by_keepers
    return handlers


def _passed_by(
    keeper: Source, inside: str | None, attribute: str, calls: dict[tuple[str, str | None, str], list[HandlerCall]]
) -> list[HandlerCall]:
    """Return the calls of an attribute: by the class that keeps it, or if it has none, by any object with that name."""
    if inside is not None and (by_class := calls.get((keeper.name, inside, attribute))):
        return by_class
    others = [call for (_, _, name), group in calls.items() if name == attribute for call in group]
    return [replace(call, surely=False) for call in others]


def _hands(call: ast.Call, name: str) -> bool:
    return any(isinstance(argument, ast.Name) and argument.id == name for argument in call.args)


def _kept_functions(source: Source) -> Iterator[tuple[str, tuple[str | None, str]]]:
    """Yield methods that keep their first argument; their class, and the attribute that keeps it."""
    for node, inside in in_classes(source.tree):
        if isinstance(node, ast.FunctionDef) and len(node.args.args) > 1:
            for descendant in ast.walk(node):
                if isinstance(descendant, ast.Assign) and last_name(descendant.value) == node.args.args[1].arg:
                    names = filter(None, map(last_name, descendant.targets))
                    yield from ((node.name, (inside, name)) for name in names)


def _passed_to_actions(files: dict[str, Source]) -> dict[str, list[HandlerCall]]:
    """Return calls that name an action of the agent's and give its arguments as a tuple."""
    actions: dict[str, list[HandlerCall]] = {}
    for source in files.values():
        for call in _calls(source.tree):
            if len(call.args) != 2:
                continue
            action, arguments = call.args
            if isinstance(action, ast.Constant) and isinstance(action.value, str) and isinstance(arguments, ast.Tuple):
                actions.setdefault(action.value, []).append(HandlerCall(len(arguments.elts), source.place(call)))
    return actions


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))
