"""Halves of character pairs, which stand for bytes of a path, outlive a reader that refuses them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

import pytest
from pydantic import TypeAdapter, ValidationError

from chaos.base.lone_surrogates import with_halves, with_stand_ins

PATH = b"/job/\xe6\x88\x91 a\xff".decode("ascii", "surrogateescape")


class Point(NamedTuple):
    name: str
    step: int


@dataclass(frozen=True)
class Part:
    path: str
    point: Point
    paths: tuple[str, ...]
    by_name: dict[str, list[str]]


PART = Part(PATH, Point("a", 1), ("我", PATH), {PATH: ["b"]})


def test_a_value_is_read_as_it_was_written() -> None:
    text = json.dumps({"path": PATH, "point": ["a", 1], "paths": ["我", PATH], "by_name": {PATH: ["b"]}})
    adapter = TypeAdapter(Part)
    with pytest.raises(ValidationError):
        adapter.validate_json(text, strict=True)
    for written in (text, text.encode()):
        plain = with_stand_ins(written)
        assert plain is not None
        assert with_halves(adapter.validate_json(plain, strict=True)) == PART


def test_a_part_without_halves_is_the_same_object() -> None:
    assert with_halves(PART) is PART
    other = Part(chr(0x10DCFF), PART.point, ("我",), {})
    restored = with_halves(other)
    assert restored.path == "\udcff"
    assert restored.point is other.point and restored.paths is other.paths and restored.by_name is other.by_name


@pytest.mark.parametrize("text", ['{"a": 1}', json.dumps("\U0001f600 我"), '"\\\\udc80"', b'"plain"'])
def test_text_without_halves_is_left_as_it_is(text: str | bytes) -> None:
    plain = with_stand_ins(text)
    assert plain is None or json.loads(plain) == json.loads(text)
