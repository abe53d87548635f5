"""The headline of a result: what broke first, in a line, and an id by which nights are compared."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from chaos.base.rank_sets import named
from chaos.checks.resume.check import NAME as RESUME
from chaos.evidence.checkpoints.parameters import is_optimizer_state, is_slot, is_weight
from chaos.evidence.statement_data import LOSS, STATE, StatementData
from chaos.evidence.text import readable
from chaos.observe.stack_words import first_stack
from chaos.report.causes import Statement, kind_of, statements_of
from chaos.report.result import Headline, Result

_LIMIT = re.compile(r"^(?P<what>.+) ≤ (?P<limit>[\d.]+ s)$")
_SECONDS = re.compile(r"^(\d+\.\d+) s$")
_MOST_NAMES = 3
"""Most parameters that are listed by name; more are described by their kind."""

_RANDOM = "random_state"


def headline_of(result: Result) -> Headline | None:
    """Return the headline of a result; None for a pass."""
    if result.verdict == "pass":
        return None
    statements = statements_of(result.checks)
    if result.reason.startswith("interrupted") or not statements:
        text = result.reason or "nothing was checked"
        return Headline(_id("run", kind_of(text.partition(";")[0])), "run", readable(text))
    first, *rest = statements
    difference = _difference(first)
    text = difference or _plain(first)
    kind = (kind_of(first.checks[0].expected), kind_of(difference or first.checks[0].seen))
    after = _after(first, [other for other in rest if other.checks[0].order is not None])
    line = " ".join(f"{first.check}: {text}{after}".split())
    return Headline(_id(first.check, first.checks[0].verdict, *kind), first.check, readable(line))


def _id(check: str, *kind: str) -> str:
    digest = hashlib.blake2b("\0".join(kind).encode(errors="backslashreplace"), digest_size=4).hexdigest()
    return f"{check}-{digest}"


def _plain(statement: Statement) -> str:
    """Return the observation and the expectation; for a time, the exceeded limit."""
    limit, seconds = _LIMIT.match(statement.expected), _SECONDS.match(statement.seen)
    if limit is not None and seconds is not None:
        return f"{limit['what']} took {float(seconds[1]):.3f} s, at most {limit['limit']} are allowed"
    return f"{first_stack(statement.seen)} (expected: {statement.expected})"


def _difference(statement: Statement) -> str | None:
    """Return which values differ on which ranks; None for a statement about something else."""
    data = statement.checks[0].data
    where = f"on {named(statement.ranks)}" if statement.ranks else ""
    step = _first_step([statement])
    if _differs(data, LOSS):
        return f"losses differ from the fault-free run's {where} from step {step} on"
    if not _differs(data, STATE):
        return None
    what, verb = part_of(data.parameters)
    if statement.check == RESUME:
        of = f" of {data.compared}" if data.compared is not None else ""
        return f"{what} {verb} not restored {where} ({len(data.parameters)}{of} parameters)"
    until = "" if step is None else f" from step {step} on"
    return f"{what} {verb} not the fault-free run's {where}{until} ({len(data.parameters)} parameters)"


def _differs(data: StatementData, quantity: str) -> bool:
    return data.quantity == quantity and (data.expected is not None or bool(data.parameters))


def part_of(parameters: Sequence[str]) -> tuple[str, str]:
    """Return the part of the state to which these parameters belong, and the verb that goes with it."""
    kinds = {_kind_of_parameter(name) for name in parameters}
    if kinds == {_RANDOM}:
        return "the random state", "was"
    if kinds == {"moment"}:
        return "the optimizer's moments", "were"
    if kinds == {"weight"}:
        return "the weights", "were"
    if kinds == {"counter"} and len(parameters) <= _MOST_NAMES:
        return ", ".join(parameters), "was" if len(parameters) == 1 else "were"
    if kinds <= {"moment", "counter"}:
        return "the optimizer's state", "was"
    return "weights and optimizer state" if kinds <= {"moment", "counter", "weight"} else "the state", "were"


def _kind_of_parameter(name: str) -> str:
    if _RANDOM in name:
        return _RANDOM
    if is_slot(name):
        return "moment"
    if is_optimizer_state(name):
        return "counter"
    return "weight" if is_weight(name) else "other"


def _after(first: Statement, rest: Sequence[Statement]) -> str:
    """Return the consequence: the step from which losses differ, else the checks that failed later."""
    losses = [other for other in rest if _differs(other.checks[0].data, LOSS)]
    if losses and not _differs(first.checks[0].data, LOSS):
        return f"; losses differ from step {_first_step(losses)} on"
    checks = dict.fromkeys(other.check for other in rest if other.check != first.check)
    return f"; then {', '.join(checks)}" if checks else ""


def _first_step(statements: Iterable[Statement]) -> int | None:
    steps = (check.data.step for statement in statements for check in statement.checks)
    return min((step for step in steps if step is not None), default=None)
