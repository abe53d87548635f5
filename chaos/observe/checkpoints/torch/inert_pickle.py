"""The structure of a pickle, without unpickling it: no class is looked up, no function is called, no object is made.

A pickle is a program. Here its instructions only build containers, plain values, and descriptions of the objects that
it would make (:class:`Inert`). ``pickletools`` decodes the instructions, for protocols 0 to 5.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any, NoReturn

from chaos.observe.checkpoints.checkpoint_error import UnknownContent

MAX_INSTRUCTIONS = 1 << 22
"""A tensor takes some 30; each instruction makes one object at most."""

MAX_INTEGER = 1 << 60
"""Larger integers are no dictionary keys: many of them can share one hash."""

MAX_PARTS = 16
"""Parts of a dictionary's key: a long key takes time whenever it is used."""


class Global:
    """The name of a class or function."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    @property
    def path(self) -> str:
        """Module and name, as in ``torch.float32``."""
        return f"{self.module}.{self.name}"


class Inert:
    """An object that the pickle would make: what it would call with which arguments, and the state it would set."""

    __slots__ = ("arguments", "called", "items", "state", "values")

    def __init__(self, called: object, arguments: tuple[object, ...]) -> None:
        self.called, self.arguments = called, arguments
        self.state: object = None
        self.items: dict[Any, object] = {}
        self.values: list[object] = []

    @property
    def path(self) -> str:
        """The name of the class or function, empty where there is none."""
        return self.called.path if isinstance(self.called, Global) else ""


Make = Callable[[object, tuple[object, ...]], object]
"""Returns the description of an object by class or function and arguments."""

_MARK = object()


def read_pickle(content: bytes, make: Make = Inert, persistent: Callable[[object], object] | None = None) -> object:
    """Return the structure that a pickle describes.

    Args:
        content: the pickle. What follows its end is not looked at.
        make: returns the description of an object. The default describes all alike.
        persistent: returns the description of an object that is kept outside, by its identifier.

    Raises ValueError where it is no sound pickle, and UnknownContent where it needs what this reader does not know.
    """
    machine = _Machine(make, persistent)
    for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        if count >= MAX_INSTRUCTIONS:
            raise UnknownContent(f"a pickle of more than {MAX_INSTRUCTIONS} instructions, the limit for a file")
        if instruction.name == "STOP":
            break
        machine.run(instruction.name, argument)
    return machine.top()


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self, make: Make, persistent: Callable[[object], object] | None) -> None:
        self._make, self._persistent = make, persistent
        self._stack: list[Any] = []
        self._memo: dict[int, object] = {}

    def run(self, name: str, argument: Any) -> None:
        """Run one instruction. Raises ValueError and UnknownContent."""
        if name in _PLAIN:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _INSTRUCTIONS:
            _INSTRUCTIONS[name](self, argument)
        elif name not in _NOTHING:
            raise UnknownContent(f"a pickle with the instruction {name}, which this reader does not know")

    def top(self) -> Any:
        """Return the last value of the stack."""
        if not self._stack or self._stack[-1] is _MARK:
            _broken()
        return self._stack[-1]

    def pop(self) -> Any:
        value = self.top()
        self._stack.pop()
        return value

    def push(self, value: object) -> None:
        self._stack.append(value)

    def push_mark(self, _: Any) -> None:
        self._stack.append(_MARK)

    def since_mark(self) -> list[Any]:
        """Take all values behind the last mark, and the mark."""
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] is _MARK:
                values = self._stack[at + 1 :]
                del self._stack[at:]
                return values
        return _broken()

    def drop(self) -> None:
        self.since_mark()

    def take(self, count: int) -> tuple[Any, ...]:
        """Take the last values, in their order."""
        return tuple(self.pop() for _ in range(count))[::-1]

    def remember(self, argument: Any) -> None:
        self._memo[len(self._memo) if argument is None else int(argument)] = self.top()

    def recall(self, argument: Any) -> None:
        if int(argument) not in self._memo:
            _broken()
        self._stack.append(self._memo[int(argument)])

    def pop_any(self, _: Any) -> None:
        if not self._stack:
            _broken()
        self._stack.pop()

    def append(self, values: list[Any]) -> None:
        """Append values to the list on the stack, or to an object that would take them."""
        target = self.top()
        if isinstance(target, Inert):
            target.values.extend(values)
        elif isinstance(target, list):
            target.extend(values)
        else:
            _broken()

    def set_items(self, values: list[Any]) -> None:
        """Set items of the dictionary on the stack, or of an object that would take them."""
        target = self.top()
        items = target.items if isinstance(target, Inert) else target
        if not isinstance(items, dict) or len(values) % 2:
            _broken()
        for key, value in zip(values[::2], values[1::2], strict=True):
            items[_key(key)] = value

    def dictionary(self, values: list[Any]) -> None:
        self._stack.append({})
        self.set_items(values)

    def construct(self, called: object, arguments: object) -> None:
        if not isinstance(arguments, tuple):
            _broken()
        self._stack.append(self._make(called, arguments))

    def construct_marked(self) -> None:
        values = self.since_mark()
        if not values:
            _broken()
        self.construct(values[0], tuple(values[1:]))

    def build(self, _: Any) -> None:
        """Set an object's state; attributes of a container are left out."""
        state, target = self.pop(), self.top()
        if isinstance(target, Inert):
            target.state = state

    def find(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            _broken()
        self._stack.append(Global(module, name))

    def keep_outside(self, identifier: object) -> None:
        if self._persistent is None:
            raise UnknownContent("a pickle with objects outside of it")
        self._stack.append(self._persistent(identifier))


def _key(key: object) -> object:
    """Return a key of a dictionary. Raises UnknownContent for keys that could be made to cost much time."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) > MAX_PARTS:
        raise UnknownContent(f"a dictionary with a key of {len(parts)} parts")
    for part in parts:
        if not (part is None or isinstance(part, (str, bytes, Global, Inert)) or type(part) in (int, bool)):
            raise UnknownContent(f"a dictionary with a key of the type {type(part).__name__}")
        if isinstance(part, int) and abs(part) >= MAX_INTEGER:
            raise UnknownContent("a dictionary with a huge integer as a key")
    return key


def _broken() -> NoReturn:
    raise ValueError("the pickle is not sound: an instruction lacks its values")


_NOTHING = frozenset({"PROTO", "FRAME"})
_PLAIN = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
_CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.push_mark,
    "POP": _Machine.pop_any,
    "POP_MARK": lambda machine, _: machine.drop(),
    "DUP": lambda machine, _: machine.push(machine.top()),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_SET": lambda machine, _: machine.push([]),
    "LIST": lambda machine, _: machine.push(machine.since_mark()),
    "FROZENSET": lambda machine, _: machine.push(machine.since_mark()),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.push(machine.take(1)),
    "TUPLE2": lambda machine, _: machine.push(machine.take(2)),
    "TUPLE3": lambda machine, _: machine.push(machine.take(3)),
    "DICT": lambda machine, _: machine.dictionary(machine.since_mark()),
    "APPEND": lambda machine, _: machine.append([machine.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.since_mark()),
    "ADDITEMS": lambda machine, _: machine.append(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.set_items(list(machine.take(2))),
    "SETITEMS": lambda machine, _: machine.set_items(machine.since_mark()),
    "PUT": _Machine.remember,
    "BINPUT": _Machine.remember,
    "LONG_BINPUT": _Machine.remember,
    "MEMOIZE": _Machine.remember,
    "GET": _Machine.recall,
    "BINGET": _Machine.recall,
    "LONG_BINGET": _Machine.recall,
    "GLOBAL": lambda machine, argument: machine.find(*argument.partition(" ")[::2]),
    "STACK_GLOBAL": lambda machine, _: machine.find(*machine.take(2)),
    "REDUCE": lambda machine, _: machine.construct(*machine.take(2)),
    "NEWOBJ": lambda machine, _: machine.construct(*machine.take(2)),
    "NEWOBJ_EX": lambda machine, _: machine.construct(*machine.take(3)[:2]),
    "OBJ": lambda machine, _: machine.construct_marked(),
    "INST": lambda machine, argument: machine.construct(
        Global(*argument.partition(" ")[::2]), tuple(machine.since_mark())
    ),
    "BUILD": _Machine.build,
    "PERSID": lambda machine, argument: machine.keep_outside(argument),
    "BINPERSID": lambda machine, _: machine.keep_outside(machine.pop()),
}
