"""The options of a script: those of argparse, click and absl, as its source declares them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chaos.init.source import Call, Source, calls, last_word

_ABSL = re.compile(r"DEFINE_(\w+)")
_TRUTH = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}


@dataclass(frozen=True)
class Option:
    """An option or a positional argument of the script.

    ``name`` is how it is written on a command line (``--save-steps``), ``attribute`` how the script reads it
    (``save_steps``). ``takes_value`` is false for a switch, ``optional_value`` true where the value may be left out.
    ``default`` is None where the script gives none that can be read.
    """

    name: str
    names: tuple[str, ...]
    attribute: str
    where: str
    takes_value: bool = True
    optional_value: bool = False
    default: object = None
    default_node: ast.expr | None = None
    type: str = ""
    choices: tuple[str, ...] = ()
    help: str = ""

    @property
    def is_truth(self) -> bool:
        """Whether its value is true or false."""
        if isinstance(self.default, bool) or "bool" in self.type:
            return True
        return bool(self.choices) and all(choice.lower() in _TRUTH for choice in self.choices)

    def typed(self, text: str) -> object:
        """Return the value that a text on the command line gives."""
        if self.is_truth:
            return _TRUTH.get(text.lower(), True)
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text


def options(sources: Sequence[Source]) -> list[Option]:
    """Return the options that the files of a job declare, in their order."""
    declared = [option for source in sources for call in calls(source) if (option := _option(call)) is not None]
    declared += [option for source in sources for option in _words_of_argv(source)]
    return sorted(declared, key=lambda option: [int(part) if part.isdigit() else 0 for part in option.where.split(":")])


def passed_options(known: Sequence[Option], arguments: Sequence[str]) -> Iterator[tuple[Option, object]]:
    """Yield the options and positional arguments that a command line gives, each with its value.

    A word without an option before it is the next positional argument.
    """
    by_name = {name: option for option in known for name in option.names}
    positional = [option for option in known if option.takes_value and not option.name.startswith("-")]
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, text = word.partition("=")
        option = by_name.get(name)
        if not name.startswith("-"):
            if positional and (option is None or option.takes_value):
                given = positional.pop(0)
                yield given, given.typed(word)
            continue
        if option is None:
            continue
        if equals:
            yield option, option.typed(text)
        elif not option.takes_value:
            yield option, option.default is not True
        elif waiting and not (waiting[0].startswith("--") and option.optional_value):
            yield option, option.typed(waiting.pop(0))


def undeclared_options(known: Sequence[Option], arguments: Sequence[str], where: str) -> list[Option]:
    """Return the options of a command line that the text of the script does not declare: a library does."""
    declared = {name for option in known for name in option.names}
    options: dict[str, Option] = {}
    for word, following in zip(arguments, [*arguments[1:], "--"], strict=False):
        name, equals, _ = word.partition("=")
        if name.startswith("--") and name != "--" and name not in declared:
            takes = bool(equals) or not following.startswith("--")
            attribute = name.removeprefix("--").replace("-", "_")
            options[name] = Option(name, (name,), attribute, where, takes_value=takes)
    return list(options.values())


def _words_of_argv(source: Source) -> Iterator[Option]:
    """Yield the words that a script looks for in its command line itself: ``"resume" in sys.argv``."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In):
            continue
        word, place = node.left, node.comparators[0]
        place = place.value if isinstance(place, ast.Subscript) else place
        if last_word(place) == "argv" and isinstance(word, ast.Constant) and isinstance(word.value, str):
            name = word.value
            yield Option(name, (name,), name.lstrip("-").replace("-", "_"), source.where(node), takes_value=False)


def _option(call: Call) -> Option | None:
    if (absl := _ABSL.fullmatch(call.name)) is not None:
        return _absl(call, absl[1])
    if call.name not in ("add_argument", "option"):
        return None
    names = tuple(
        argument.value
        for argument in call.node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    )
    flags = tuple(part for name in names for part in name.split("/") if part.startswith("-"))
    if not names or (call.name == "option" and not flags):
        return None
    name = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else names[0])
    attribute = _text(call, "dest") or name.lstrip("-").replace("-", "_")
    action = call.argument(None, "action")
    word = str(action.value) if isinstance(action, ast.Constant) else last_word(action) if action is not None else ""
    node = call.argument(None, "default")
    default = node.value if isinstance(node, ast.Constant) else None
    if word in ("store_true", "store_false") and default is None:
        default = word == "store_false"
    kind = call.argument(None, "type")
    is_flag = call.argument(None, "is_flag")
    switch = word in ("store_true", "store_false", "store_const", "count", "BooleanOptionalAction")
    switch = (
        switch
        or (isinstance(is_flag, ast.Constant) and is_flag.value is True)
        or any("/" in spelling for spelling in names)
    )
    return Option(
        name,
        flags or names,
        attribute,
        call.where,
        takes_value=not switch,
        optional_value=_text(call, "nargs") == "?",
        default=default,
        default_node=node,
        type=last_word(kind) if kind is not None else "",
        choices=_choices(call.argument(None, "choices")),
        help=_text(call, "help"),
    )


def _absl(call: Call, kind: str) -> Option | None:
    name, node = call.argument(0, "name"), call.argument(1, "default")
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    default = node.value if isinstance(node, ast.Constant) else None
    about = call.argument(2, "help")
    return Option(
        f"--{name.value}",
        (f"--{name.value}",),
        name.value,
        call.where,
        default=default,
        default_node=node,
        type="bool" if kind.startswith("bool") else kind,
        help=str(about.value) if isinstance(about, ast.Constant) else "",
    )


def _text(call: Call, name: str) -> str:
    node = call.argument(None, name)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _choices(node: ast.expr | None) -> tuple[str, ...]:
    if not isinstance(node, (ast.List, ast.Tuple)):
        return ()
    return tuple(str(element.value) for element in node.elts if isinstance(element, ast.Constant))
