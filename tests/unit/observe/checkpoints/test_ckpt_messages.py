"""The fields of a value are read as protobuf reads them, and what it would pass over is refused."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from google.protobuf.internal import api_implementation

from chaos.observe.checkpoints.blocks import Span
from chaos.observe.checkpoints.ckpt_messages import MAX_FIELDS, read_value
from tests.unit.observe.ckpt_writer import CkptWriter
from tests.unit.observe.protobuf_value import told_by_protobuf

WRITE = CkptWriter()
ODD = (
    *(b"\x0b\x0c", b"\x13\x08\x01\x14", b"\x1b", b"\x13\x1b\x1c\x14", b"\x13\x14"),  # groups
    *(b"\x0d1234", b"\x0912345678", b"\x20\x01", b"\x0c", b"\x0e", b"\x0f"),  # other wire types
    *(b"\x00", b"\x02\x00", b"\x88\x00\x01", b"\x08" + b"\xff" * 9 + b"\x7f"),  # no number, longer than needed
)
NUMBERS = (0, 1, 2, 127, 128, 300, 2**63, 2**64 - 1)


def told(raw: bytes) -> tuple[object, ...] | str:
    """What the reader says, in the form of the oracle."""

    def content(span: Span | None) -> bytes | None:
        return None if span is None else raw[span.at : span.end]

    try:
        value = read_value(lambda at, count: raw[at : at + count], 0, len(raw))
    except ValueError as error:
        return str(error)
    found = (value.tag, value.map_tensor, value.tensor_type, value.content)
    tag, map_tensor, tensor_type, values = map(content, found)
    return tag, map_tensor, value.dims, tensor_type, values


def part(random: Random) -> bytes:
    """A field of a tensor; or none of a tensor."""
    kind = random.randrange(12)
    if kind < 3:
        return b"\x08" + WRITE.varint(random.choice(NUMBERS))
    if kind == 3:  # packed
        return WRITE.field(1, b"".join(WRITE.varint(random.choice(NUMBERS)) for _ in range(random.randrange(6))))
    if kind < 6:
        return WRITE.field(2, random.choice([b"Float32", b"", b"\xff"]))
    if kind < 9:
        return WRITE.field(3, random.randbytes(random.randrange(6)))
    return random.choice(ODD) if kind < 11 else random.randbytes(random.randrange(4))


def value(random: Random) -> bytes:
    """A value with its fields in any order, half of them damaged."""
    fields = [
        WRITE.field(1, random.choice([b"a", b"", b"tag"])),
        WRITE.field(2, b"".join(part(random) for _ in range(random.randrange(5)))),
    ]
    fields += [WRITE.field(3, b"m" * random.randrange(3))] * (random.random() < 0.2)
    fields += [WRITE.field(random.choice([1, 2]), part(random))] * (random.random() < 0.2)
    fields += [part(random)] * (random.random() < 0.2)
    random.shuffle(fields)
    raw = bytearray(b"".join(fields))
    for _ in range(random.randrange(-3, 4)):
        at = random.randrange(len(raw) + 1)
        damage = random.randrange(3)
        if damage == 0 and at < len(raw):
            raw[at] ^= 1 << random.randrange(8)
        elif damage == 1:
            del raw[at : at + random.randrange(1, 4)]
        else:
            raw[at:at] = random.choice([b"\x80", b"\x80\x00", b"\xff" * 4, b"\xff" * 9, random.randbytes(2)])
    return bytes(raw)


@pytest.mark.skipif(api_implementation.Type() != "upb", reason="the others differ in what they say of odd values")
def test_the_reader_and_protobuf_agree() -> None:
    random, seen = Random(20261121), Counter[str]()
    for _ in range(20_000):
        raw = value(random)
        expected = told_by_protobuf(raw)
        assert told(raw) == expected, raw
        seen[" ".join(expected.split()[:4]) if isinstance(expected, str) else "read"] += 1
    assert set(seen) >= {"read", "the record is not", "the record holds a"}
    assert min(seen["read"], seen["the record is not"], seen["the record holds a"]) > 1000


def test_fields_in_any_order_are_read() -> None:
    content, kind, dims = WRITE.field(3, b"12345678"), WRITE.field(2, b"Float32"), b"\x08\x02"
    for tensor in (content + kind + dims, dims + content + kind, kind + dims + content):
        raw = WRITE.field(2, tensor) + WRITE.field(1, b"w")
        assert told(raw) == (b"w", None, (2,), b"Float32", b"12345678") == told_by_protobuf(raw)


@pytest.mark.parametrize(
    "tensor",
    [b"\x08\x01" * (MAX_FIELDS + 1), b"\x98\x06\x01" * (MAX_FIELDS + 1), WRITE.field(1, b"\x01" * (MAX_FIELDS + 1))],
    ids=["dims", "unknown fields", "packed dims"],
)
def test_more_fields_than_a_value_has_are_refused(tensor: bytes) -> None:
    raw = WRITE.field(1, b"w") + WRITE.field(2, tensor)
    assert told(raw) == f"the record has more than {MAX_FIELDS} fields, which no checkpoint value has"


def test_a_group_of_many_fields_is_not_followed_to_its_end() -> None:
    looked: list[int] = []
    raw = b"\x0b" + b"\x08\x01" * 100_000 + b"\x0c"

    def peek(at: int, count: int) -> bytes:
        looked.append(at)
        return raw[at : at + count]

    with pytest.raises(ValueError, match="is not a checkpoint value"):
        read_value(peek, 0, len(raw))
    assert len(looked) < 1000
