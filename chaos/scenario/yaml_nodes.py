"""YAML text to nodes with positions, and nothing else.

Nodes are made from the parser's events and not by PyYAML's composer: anchors stay visible, depth is bounded before
anything recurses, and no constructor ever runs. Only one document of mappings, sequences and scalars is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import yaml

from chaos.scenario.errors import Problems, ScenarioError, quote
from chaos.scenario.scalars import resolve
from chaos.scenario.source import Source

MAX_DEPTH = 32
"""Deepest nesting of mappings and sequences."""

MAX_NODES = 250_000
"""Most nodes in one file; a list of 131,072 ranks still fits."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Scalar:
    """A scalar at a line and column, both counted from 1.

    ``text`` is the content without quotes, ``value`` the typed value. ``refers`` says that the text holds ``${``.
    ``broken`` marks a scalar with an already reported problem; no further problem is reported for it.
    """

    line: int
    column: int
    text: str
    value: str | int | float | bool | None
    refers: bool
    broken: bool = False


@dataclass(slots=True)
class Sequence:
    """A sequence that begins at a line and column."""

    line: int
    column: int
    items: list[Node] = field(default_factory=list)
    broken: bool = False


class Entry(NamedTuple):
    """A key's position, and its value."""

    line: int
    column: int
    value: Node


@dataclass(slots=True)
class Mapping:
    """A mapping that begins at a line and column, with its entries in the order of the file."""

    line: int
    column: int
    entries: dict[str, Entry] = field(default_factory=dict)
    broken: bool = False


Node: TypeAlias = "Scalar | Sequence | Mapping"


def plain_data(node: Node, without: Collection[str] = ()) -> Any:
    """Return a node as plain data. Keys ``without``, in small letters, are left out at every level."""
    if isinstance(node, Mapping):
        return {
            key: plain_data(entry.value, without) for key, entry in node.entries.items() if key.lower() not in without
        }
    if isinstance(node, Sequence):
        return [plain_data(item, without) for item in node.items]
    return node.value


class _Key(NamedTuple):
    """A key that waits for its value; ``name`` is None where the key itself is a problem."""

    name: str | None
    line: int
    column: int


def parse(source: Source, problems: Problems) -> Mapping:
    """Turn the text into its root mapping.

    Problems that leave the rest readable (duplicate keys, anchors, tags, keys that are not text) are appended to
    ``problems``. Raises ScenarioError with all problems so far if the text is not YAML, is nested too deep, holds
    no or several documents, or is not a mapping.
    """
    builder = _Builder(source, problems)
    read_events(source, _Loader, builder.read, builder.fatal)
    root = builder.root
    if root is None or (isinstance(root, Scalar) and root.value is None and not root.broken):
        raise builder.fatal(1, 1, "the file is empty", "a scenario begins with the line 'chaos: 1'")
    if not isinstance(root, Mapping):
        raise builder.fatal(root.line, root.column, "a scenario is a mapping of keys to values")
    return root


def read_events(
    source: Source, make: Callable[[str], Any], read: Callable[[Any], None], fatal: Callable[..., ScenarioError]
) -> None:
    """Let ``read`` take the events of the loader that ``make`` makes from the text.

    Raises the error that ``fatal`` makes of a line, a column and a message if the text is not YAML, and errors of
    ``read``.
    """
    loader = None
    try:
        loader = make(source.text)
        read(loader)
    except yaml.MarkedYAMLError as error:
        raise fatal(*explain(error, source)) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # A reader error has no mark; a bad escape is a bare ValueError in the loader that is written in Python.
        raise fatal(1, 1, f"not YAML: {str(error).partition(chr(10))[0]}") from None
    finally:
        if loader is not None:
            loader.dispose()


def parse_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of text that is one YAML scalar, quotes allowed.

    Raises ValueError or yaml.YAMLError on other text.
    """
    loader = _Loader(text)
    try:
        events = list(iter(loader.get_event, None))
    finally:
        loader.dispose()
    scalars = [event for event in events if isinstance(event, yaml.ScalarEvent)]
    if len(events) != 5 or len(scalars) != 1:
        raise ValueError("not one scalar")
    builder = _Builder(Source("", text), Problems())
    node = builder._scalar(scalars[0], 1, 1)
    if node.broken:
        raise ValueError("not a plain scalar")
    return node.value


class _Builder:
    """Builds the nodes of one document. ``_open`` holds the collections that have not ended, with a waiting key."""

    def __init__(self, source: Source, problems: Problems) -> None:
        self.source = source
        self.problems = problems
        self.root: Node | None = None
        self._open: list[tuple[Sequence | Mapping, list[_Key]]] = []
        self._nodes = 0

    def fatal(self, line: int, column: int, message: str, hint: str = "") -> ScenarioError:
        """Return the error that ends the reading: this problem and those found before it."""
        return ScenarioError([*self.problems, self.source.problem(line, column, message, hint=hint)])

    def read(self, loader: Any) -> None:
        """Take the loader's events up to the end of the text."""
        documents = 0
        while True:
            event = loader.get_event()
            if event is None or isinstance(event, yaml.StreamEndEvent):
                return
            mark = event.start_mark
            line, column = mark.line + 1, mark.column + 1
            if isinstance(event, yaml.ScalarEvent):
                self._add(self._scalar(event, line, column))
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                node = Mapping(line, column) if isinstance(event, yaml.MappingStartEvent) else Sequence(line, column)
                node.broken = self._decorated(event, line, column)
                self._add(node)
                self._open.append((node, []))
                if len(self._open) > MAX_DEPTH:
                    raise self.fatal(line, column, f"nested more than {MAX_DEPTH} levels deep")
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self._open.pop()
            elif isinstance(event, yaml.AliasEvent):
                self._problem(line, column, f"alias '*{event.anchor}'", "write the value out, or use a variable")
                self._add(Scalar(line, column, f"*{event.anchor}", None, refers=False, broken=True))
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.fatal(line, column, "a second document begins here", "a file holds one scenario")

    def _scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> Scalar:
        text: str = event.value
        broken = self._decorated(event, line, column)
        value: str | int | float | bool | None = text
        if event.implicit[0] and not event.style:
            try:
                value = resolve(text)
            except ValueError as error:
                self._problem(line, column, f"{error}: {quote(text)}", text=text)
                broken = True
        elif not text.isprintable() and (bad := next((char for char in text if _unusable(char)), None)):
            self._problem(line, column, f"text holds the character U+{ord(bad):04X}, which no program takes")
            broken = True
        return Scalar(line, column, text, value, "${" in text, broken)

    def _decorated(self, event: Any, line: int, column: int) -> bool:
        """Refuse tags and anchors: a tag could name code, an alias can multiply its anchor without end."""
        if event.tag is not None:
            self._problem(line, column, f"tag {quote(event.tag)}", "tags are not allowed")
            return True
        if event.anchor is not None:
            self._problem(line, column, f"anchor '&{event.anchor}'", "anchors are not allowed; use a variable")
        return False

    def _add(self, node: Node) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self.fatal(node.line, node.column, f"more than {MAX_NODES} values")
        if not self._open:
            self.root = node
            return
        parent, waiting = self._open[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif not waiting:
            waiting.append(self._key(node, parent))
        else:
            key = waiting.pop()
            if key.name is not None:
                parent.entries[key.name] = Entry(key.line, key.column, node)

    def _key(self, node: Node, parent: Mapping) -> _Key:
        line, column = node.line, node.column
        bad = _Key(None, line, column)
        if not isinstance(node, Scalar):
            self._problem(line, column, "a key must be text")
            return bad
        if node.broken:
            return bad
        if node.text == "<<":
            self._problem(line, column, "merge key '<<'", "write the keys out", text="<<")
            return bad
        if not isinstance(node.value, str):
            message = f"a key must be text, not {quote(node.text)}" if node.text else "a key is missing"
            self._problem(line, column, message, f'write it in quotes: "{node.text}"' if node.text else "", node.text)
            return bad
        if node.refers:
            self._problem(line, column, f"a key cannot hold a variable: {quote(node.text)}", text=node.text)
            return bad
        if (first := parent.entries.get(node.value)) is not None:
            message = f"key {quote(node.value)} is here twice; the first is in line {first.line}"
            self._problem(line, column, message, text=node.text)
            return bad
        return _Key(node.value, line, column)

    def _problem(self, line: int, column: int, message: str, hint: str = "", text: str = "") -> None:
        self.problems.append(self.source.problem(line, column, message, text=text, hint=hint))


def _unusable(char: str) -> bool:
    return char == "\0" or "\ud800" <= char <= "\udfff"


_PLAIN_WORDS = {
    "mapping values are not allowed": "a second ':' in one value, or a wrong indentation",
    "did not find expected key": "a key was expected here; is the indentation right?",
    "expected <block end>": "a key was expected here; is the indentation right?",
    "did not find expected '-' indicator": "a list item '- ' was expected here; is the indentation right?",
    "could not find expected ':'": "the ':' after a key is missing",
    "found unexpected end of stream": "the file ends inside quotes",
    "did not find expected node content": "a value was expected here",
    "expected the node content": "a value was expected here",
    "found a tab character that violates indentation": "a tab cannot indent",
}


def explain(error: yaml.MarkedYAMLError, source: Source) -> tuple[int, int, str, str]:
    """Return line, column, message and hint of the parser's error."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    problem = error.problem or "cannot be read"
    words = next((words for start, words in _PLAIN_WORDS.items() if problem.startswith(start)), problem)
    text = source.line(line)
    here = text[column - 1 : column]
    hint = ""
    if here == "\t" or "tab character" in problem:
        words, hint = "a tab cannot indent", "indent with blanks"
    elif here == "{" and text[column - 2 : column - 1] == "$":
        words, hint = "a variable inside [ ] or { } must be in quotes", 'write "${name}"'
    elif "nesting depth" in problem:  # libyaml 0.2.6 and later has a limit of its own, and reads ahead up to it
        words = f"nested more than {MAX_DEPTH} levels deep"
    elif "cannot start any token" in problem:
        words, hint = f"a value cannot start with {quote(here)}", "put the text in quotes"
    elif error.context and error.context_mark and error.context_mark.line + 1 != line:
        # Where the reader gave up is often far from where the mistake is.
        hint = f"{error.context.removeprefix('while ')}, which begins in line {error.context_mark.line + 1}"
    return line, column, words, hint
