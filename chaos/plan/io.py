"""Plan to JSON and back, without loss."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from chaos.base.strict_json import parse
from chaos.plan.model import (
    Aids,
    Budget,
    Comparable,
    Comparison,
    Plan,
    PlannedCheckpoint,
    PlannedFault,
    PlannedRestore,
    Recovery,
    Watch,
)

_MAX_PROBLEMS = 10


class PlanFormatError(ValueError):
    """Text that is not a plan. The message names each place that is wrong."""


def as_data(plan: Plan) -> dict[str, Any]:
    """The plan as data for a JSON encoder: dataclasses become mappings. Parts are shared with the plan, not copied."""
    data = _fields(plan)
    data["faults"] = [_fields(fault) for fault in plan.faults]
    data["checkpoint"] = None if plan.checkpoint is None else _fields(plan.checkpoint)
    data["restore"] = None if plan.restore is None else _fields(plan.restore)
    data["budget"] = _fields(plan.budget)
    data["comparable"] = None if plan.comparable is None else _fields(plan.comparable)
    data["watch"] = None if plan.watch is None else _fields(plan.watch)
    data["recoveries"] = [_fields(recovery) for recovery in plan.recoveries]
    data["aids"] = _fields(plan.aids)
    data["comparison"] = None if plan.comparison is None else _fields(plan.comparison)
    return data


def dumps(plan: Plan) -> str:
    """JSON of a plan, one key of the plan on each line; ranks that are keys become text.

    Raises ValueError or TypeError on parameters of a fault that JSON cannot hold.
    """
    entries = (f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in as_data(plan).items())
    return "{\n" + ",\n".join(f"  {entry}" for entry in entries) + "\n}\n"


def fingerprint(content: bytes) -> str:
    """What a run records of its plan.json, so that a plan that was changed afterwards is noticed."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def loads(text: str | bytes) -> Plan:
    """Read a plan that :func:`dumps` wrote.

    Raises PlanFormatError on anything else: text that is not JSON, a missing, unknown or wrongly typed value.
    """
    try:
        unknown = _unknown_keys(text)
        plan = _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        shown = [f"{'.'.join(str(part) for part in item['loc']) or 'plan'}: {item['msg']}" for item in found]
        raise PlanFormatError(_message(shown)) from None
    except ValueError as error:
        raise PlanFormatError(f"not a plan: not JSON: {error}") from None
    if unknown:
        raise PlanFormatError(_message([f"{place}: unknown key" for place in unknown]))
    return plan


_Part = (
    Plan
    | PlannedFault
    | PlannedCheckpoint
    | PlannedRestore
    | Budget
    | Recovery
    | Aids
    | Comparison
    | Comparable
    | Watch
)


def _fields(part: _Part) -> dict[str, Any]:
    # dataclasses.asdict would copy every rank of every group.
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


@cache
def _adapter() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


def _unknown_keys(text: str | bytes) -> list[str]:
    """Keys that no part of a plan has; the adapter passes them over."""
    data = parse(text)
    if not isinstance(data, dict):
        return []
    parts: list[tuple[str, type, Any]] = [("", Plan, data), ("checkpoint.", PlannedCheckpoint, data.get("checkpoint"))]
    parts.append(("budget.", Budget, data.get("budget")))
    parts += [("aids.", Aids, data.get("aids")), ("comparison.", Comparison, data.get("comparison"))]
    parts.append(("restore.", PlannedRestore, data.get("restore")))
    parts += [("comparable.", Comparable, data.get("comparable")), ("watch.", Watch, data.get("watch"))]
    for name, kind in (("faults", PlannedFault), ("recoveries", Recovery)):
        listed = data.get(name)
        if isinstance(listed, list):
            parts.extend((f"{name}.{index}.", kind, part) for index, part in enumerate(listed))
    return [
        f"{place}{name}"
        for place, kind, part in parts
        if isinstance(part, dict)
        for name in sorted(part.keys() - {field.name for field in dataclasses.fields(kind)})
    ]


def _message(problems: list[str]) -> str:
    more = len(problems) - _MAX_PROBLEMS
    return f"not a plan: {'; '.join(problems[:_MAX_PROBLEMS])}{f'; and {more} more' if more > 0 else ''}"
