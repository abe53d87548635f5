"""Halves of character pairs in JSON. Python makes them of bytes in a path that its locale cannot decode (PEP 383).

The parser of pydantic refuses them, although JSON can hold them. So another character takes the place of each while a
text is read, of a range that Unicode leaves to programs.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import TypeVar

from chaos.base.strict_json import parse

_SHIFT = 0x100000
_STAND_INS = {half: half + _SHIFT for half in range(0xD800, 0xE000)}
_HALVES = {stand_in: half for half, stand_in in _STAND_INS.items()}

_Value = TypeVar("_Value")


def with_stand_ins(text: str | bytes) -> str | None:
    """Return a JSON text without halves of pairs; None where it has none. Raises ValueError where it is no JSON."""
    if b"\\ud" not in (text if isinstance(text, bytes) else text.encode(errors="replace")).lower():
        return None
    plain = json.dumps(parse(text), ensure_ascii=False)
    return None if plain.isascii() else plain.translate(_STAND_INS)


def with_halves(value: _Value) -> _Value:
    """Return a value of texts, lists, tuples, mappings and dataclasses with the halves back in their places.

    A part without any is the same object.
    """
    return _restored(value)  # type: ignore[return-value]


def _restored(value: object) -> object:
    if isinstance(value, str):
        restored = value if value.isascii() else value.translate(_HALVES)
        return value if restored == value else restored
    if isinstance(value, dict):
        pairs = {_restored(key): _restored(item) for key, item in value.items()}
        return value if _same(value, pairs) and _same(value.values(), pairs.values()) else pairs
    if isinstance(value, (list, tuple)):
        items = [_restored(item) for item in value]
        made = type(value)._make(items) if hasattr(value, "_make") else type(value)(items)
        return value if _same(value, items) else made
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        restored_fields = {name: _restored(part) for name, part in fields.items()}
        same = _same(fields.values(), restored_fields.values())
        return value if same else dataclasses.replace(value, **restored_fields)
    return value


def _same(before: Iterable[object], after: Iterable[object]) -> bool:
    return all(one is other for one, other in zip(before, after, strict=True))
