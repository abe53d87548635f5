"""Plan to JSON and back, without loss."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from chaos.base.lone_surrogates import with_halves, with_stand_ins
from chaos.base.strict_json import parse
from chaos.plan.job_effect import JobEffect
from chaos.plan.model import Plan

KEYS = (
    "scenario",
    "source",
    "cell",
    "seed",
    "ranks",
    "nodes",
    "replica_groups",
    "faults",
    "mechanism",
    "checkpoint",
    "resumes",
    "resume_step",
    "last_step",
    "steps_per_epoch",
    "checkpoint_interval",
    "protection",
    "loss_tolerance",
    "baseline",
    "budget",
    "timings",
    "finding",
    "failing",
    "finding_sdk",
    "finding_always",
    "failing_with_vendor",
    "recoveries",
    "strategies",
    "recovery_options",
    "comparison",
    "restore",
    "group_info",
    "gradients",
    "loss_ranks",
    "shard",
    "comparable",
    "watch",
    "cleans_before_saving",
    "exit_code",
    "sink_size",
    "steps_per_update",
    "mean_tolerance",
    "state_tolerances",
    "false_alarm",
    "outdated_by",
    "every_rank_saves",
    "root_cause",
    "configured",
    "reasons",
    "lines",
)
"""The keys of plan.json in their order; files of earlier versions have them as well, some under an older name."""

_OLD_NAMES = {"aids": "recovery_options"}
"""Keys of earlier versions, with their names today."""

_MAX_PROBLEMS = 10


class PlanFormatError(ValueError):
    """Text that is not a plan. The message names each wrong place."""


def as_data(plan: Plan) -> dict[str, Any]:
    """Return the plan as data for a JSON encoder, without its parts.

    Dataclasses become mappings, and nothing is copied.
    """
    values = _fields(plan)
    for part in _parts():
        values.update(_fields(values.pop(part)))
    return {name: _data(values[name]) for name in KEYS}


def dumps(plan: Plan) -> str:
    """Return the JSON of a plan, one key of the plan on each line; rank numbers used as keys become text.

    Raises ValueError or TypeError on parameters of a fault that JSON cannot hold.
    """
    entries = (f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in as_data(plan).items())
    return "{\n" + ",\n".join(f"  {entry}" for entry in entries) + "\n}\n"


def fingerprint(content: bytes) -> str:
    """Return the recorded digest of plan.json, by which a run notices a plan that was changed afterwards."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def loads(text: str | bytes) -> Plan:
    """Read a plan that :func:`dumps` wrote.

    Raises PlanFormatError on anything else: text that is not JSON, a missing, unknown or wrongly typed value.
    """
    try:
        text = _with_names_of_today(text)
        unknown = _unknown_keys(text)
        plain = with_stand_ins(text)
        values = _fields(_adapter().validate_json(text if plain is None else plain, strict=True))
        values = values if plain is None else with_halves(values)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        shown = [f"{'.'.join(str(part) for part in item['loc']) or 'plan'}: {item['msg']}" for item in errors]
        raise PlanFormatError(_message(shown)) from None
    except ValueError as error:
        raise PlanFormatError(f"not a plan: not JSON: {error}") from None
    if unknown:
        raise PlanFormatError(_message([f"{place}: unknown key" for place in unknown]))
    for name, part in _parts().items():
        values[name] = part(**{field.name: values.pop(field.name) for field in dataclasses.fields(part)})
    return Plan(**values)


@cache
def _parts() -> Mapping[str, type[Any]]:
    """Return the parts of every plan by their names. All other fields are keys of plan.json themselves."""
    return {
        name: kind
        for name, kind in get_type_hints(Plan).items()
        if isinstance(kind, type) and dataclasses.is_dataclass(kind)
    }


@cache
def _flat() -> type[Any]:
    """Return a dataclass with the keys of plan.json."""
    hints = get_type_hints(Plan)
    fields = {field.name: field for field in dataclasses.fields(Plan) if field.name not in _parts()}
    for part in _parts().values():
        hints.update(get_type_hints(part))
        fields.update((field.name, field) for field in dataclasses.fields(part))
    keys = [(name, hints[name], _default(fields[name])) for name in KEYS]
    return dataclasses.make_dataclass("Plan", keys, frozen=True, kw_only=True)


def _default(field: dataclasses.Field[Any]) -> Any:
    return dataclasses.field(default=field.default, default_factory=field.default_factory)


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(_flat())


def _fields(part: Any) -> dict[str, Any]:
    # dataclasses.asdict would copy every rank of every group.
    return {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}


def _data(value: Any) -> Any:
    if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
        return [_plain(each) for each in value]
    return _plain(value) if dataclasses.is_dataclass(value) else value


def _plain(part: Any) -> dict[str, Any]:
    """Return the fields of the content of a part; an effect becomes its name."""
    return {name: value.name if isinstance(value, JobEffect) else value for name, value in _fields(part).items()}


def _with_names_of_today(text: str | bytes) -> str | bytes:
    """Return the text with the keys of today; one that has a key under both names is left, and has an unknown key."""
    data = parse(text)
    if not isinstance(data, dict):
        return text
    old = {name: today for name, today in _OLD_NAMES.items() if name in data and today not in data}
    return json.dumps({old.get(name, name): value for name, value in data.items()}) if old else text


def _unknown_keys(text: str | bytes) -> list[str]:
    """Return the keys that no part of a plan has; the adapter passes them over."""
    data = parse(text)
    if not isinstance(data, dict):
        return []
    return [
        f"{place}{name}"
        for place, kind, part in (("", _flat(), data), *_mappings(data))
        if isinstance(part, dict)
        for name in sorted(part.keys() - {field.name for field in dataclasses.fields(kind)})
    ]


def _mappings(data: Mapping[str, Any]) -> Iterator[tuple[str, type[Any], Any]]:
    """Yield every place of plan.json that holds a dataclass, or a list of them: its place, its type, its value."""
    for name, hint in get_type_hints(_flat()).items():
        kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
        if not kinds:
            continue
        (kind,) = kinds
        value = data.get(name)
        if isinstance(value, list):
            yield from ((f"{name}.{index}.", kind, each) for index, each in enumerate(value))
        else:
            yield f"{name}.", kind, value


def _message(problems: list[str]) -> str:
    more = len(problems) - _MAX_PROBLEMS
    return f"not a plan: {'; '.join(problems[:_MAX_PROBLEMS])}{f'; and {more} more' if more > 0 else ''}"
