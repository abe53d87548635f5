"""A remote helper's messages, from JSON to facts: it is on another host, so each value is checked before it counts.

A parser raises KeyError, TypeError or ValueError for a value of another shape; text may hold lone surrogates, as names
of files do.
"""

from __future__ import annotations

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess, Role
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.net.connections import Connection
from chaos.machine.linux.net.echo import Echoes
from chaos.machine.linux.net.netfilter import Rule, RuleCounter
from chaos.machine.linux.net.ports import Ports
from chaos.machine.linux.process import ProcessIdentity, State
from chaos.machine.linux.procfs import Signals

T = TypeVar("T")
Parser = Callable[[Any], T]
Errors = tuple[type[Exception], ...]
"""Kinds that a caller distinguishes."""

_MOST = 1 << 64
"""No number of a kernel is as large, nor the number of a caller."""

_SHOWN = 80


class Asking(ABC):
    """Asks a helper. Each answer becomes facts, PlatformError, or an error that the call names."""

    def _ask(self, parse: Parser[T], request: str, /, **arguments: Any) -> T:
        """Return the answer to a request.

        Raises what :meth:`_call` does, and PlatformError where the answer has another shape.
        """
        answer = self._call(request, **arguments)
        try:
            return parse(answer)
        except (KeyError, TypeError, ValueError) as error:
            raise PlatformError(f"{self}: its answer to {request!r} is not understood: {error}") from error

    @abstractmethod
    def _call(self, request: str, /, *, seconds: float = 0.0, raises: Errors = (), **arguments: Any) -> Any:
        """Return the result of a request.

        Of the helper's possible errors, ``raises`` pass unchanged.
        """


def text(value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise TypeError(f"{_short(value)} is no text")
    return value


def whole(value: Any) -> int:
    """Return a whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _MOST:
        raise TypeError(f"{_short(value)} is no whole number")
    return value


def number(value: Any) -> float:
    """Return a number of any kind."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    return float(whole(value))


def yes(value: Any) -> bool:
    """Return yes or no."""
    if not isinstance(value, bool):
        raise TypeError(f"{_short(value)} is neither yes nor no")
    return value


def fields(value: Any) -> Mapping[str, Any]:
    """Return an object."""
    if not isinstance(value, dict):
        raise TypeError(f"{_short(value)} is no object")
    return value


def list_of(parse: Parser[T]) -> Parser[list[T]]:
    """Return a parser of a list, all of one kind."""

    def parsed(value: Any) -> list[T]:
        if not isinstance(value, list):
            raise TypeError(f"{_short(value)} is no list")
        return [parse(part) for part in value]

    return parsed


def optional(parse: Parser[T]) -> Parser[T | None]:
    """Return a parser of a value or None."""
    return lambda value: None if value is None else parse(value)


def by_name(parse: Parser[T]) -> Parser[dict[str, T]]:
    """Return a parser of an object, all values of one kind."""
    return lambda value: {name: parse(field) for name, field in fields(value).items()}


def state(value: Any) -> State:
    """Return whether a process lives."""
    value_of_state: State = _one_of(value, get_args(State))
    return value_of_state


def file(value: Any) -> tuple[str, tuple[int, int]]:
    """Return a file with its size and time of change."""
    return text(fields(value)["path"]), (whole(value["size"]), whole(value["changed"]))


def piece(value: Any) -> bytes:
    """Return bytes of a file, from base64."""
    return base64.b64decode(text(value), validate=True)


def exit_statuses(value: Any) -> ExitStatus | None:
    """Return how the single process of the request ended; None while it runs."""
    (status,) = list_of(optional(fields))(value)
    return None if status is None else ExitStatus(optional(whole)(status["signal"]), optional(whole)(status["code"]))


def signals(value: Any) -> Signals:
    """Return a process's handling of signals."""
    return Signals(*(frozenset(list_of(whole)(fields(value)[key])) for key in ("caught", "ignored", "pending")))


def identity(value: Any, node: int) -> ProcessIdentity:
    """Return a process of that node."""
    return ProcessIdentity(whole(fields(value)["pid"]), whole(value["start_time"]), text(value["boot"]), node)


def found_process(value: Any, node: int) -> FoundProcess:
    """Return a process of the run on that node."""
    role: Role = _one_of(fields(value)["role"], get_args(Role))
    return FoundProcess(
        identity(value["identity"], node),
        whole(value["ppid"]),
        whole(value["session"]),
        role,
        optional(whole)(value["rank"]),
        optional(text)(value["attempt"]),
        tuple(list_of(text)(value["cmdline"])),
        optional(text)(value["part"]),
    )


def ended_processes(value: Any, node: int) -> Ended:
    """Return the processes that have ended on that node, and those that are left."""
    left = [(found_process(process, node), text(why)) for process, why in list_of(_pair)(fields(value)["remaining"])]
    return Ended(tuple(list_of(lambda reply: found_process(reply, node))(value["ended"])), tuple(left))


def left_over(value: Any) -> dict[str, list[str]]:
    """Return the leftovers of a run, in words."""
    return {key: list_of(text)(fields(value)[key]) for key in ("processes", "mounts")}


def rule_counter(value: Any) -> RuleCounter:
    """Return a rule and the kernel's counters of it."""
    rule, passed = _rule(fields(value)["rule"]), whole(value["passed"])
    return RuleCounter(rule, _numbers(value["came"]), _numbers(value["vanished"]), passed)


def echoes(value: Any) -> Echoes:
    """Return the result of echo requests."""
    return Echoes(whole(fields(value)["sent"]), list_of(number)(value["milliseconds"]))


def connection(value: Any) -> Connection:
    """Return a connection."""
    return Connection(
        text(fields(value)["source"]),
        whole(value["source_port"]),
        text(value["target"]),
        whole(value["target_port"]),
        whole(value["interface"]),
        whole(value["cookie"]),
        whole(value["inode"]),
    )


def _rule(value: Any) -> Rule:
    ports = fields(fields(value)["ports"])
    return Rule(
        text(value["source"]),
        text(value["target"]),
        optional(number)(value["loss"]),
        optional(whole)(value["rate"]),
        Ports(whole(ports["source"]), whole(ports["target"])),
        optional(number)(value["delay"]),
        number(value["jitter"]),
    )


def _pair(value: Any) -> tuple[Any, Any]:
    first, second = list_of(lambda part: part)(value)
    return first, second


def _numbers(value: Any) -> tuple[int, int]:
    first, second = _pair(value)
    return whole(first), whole(second)


def _one_of(value: Any, words: tuple[Any, ...]) -> Any:
    if text(value) not in words:
        raise ValueError(f"{_short(value)} is none of {', '.join(words)}")
    return value


def _short(value: Any) -> str:
    return type(value).__name__ if isinstance(value, (dict, list)) else repr(value)[:_SHOWN]
