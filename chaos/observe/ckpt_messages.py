"""The protobuf message that a MindSpore ``.ckpt`` file is made of.

Facts from ``mindspore/train/checkpoint_pb2.py`` (2.10): ``Checkpoint {repeated Value value = 1}``; ``Value {string
tag = 1; TensorProto tensor = 2; MapTensorProto maptensor = 3}``; ``TensorProto {repeated int64 dims = 1 (not packed);
string tensor_type = 2; bytes tensor_content = 3}``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

_PACKAGE = "chaos.observe.ckpt"

MAX_FIELDS = 64
"""Fields of a value and its tensor, each dim counted. protobuf takes many times their bytes in memory for them."""

_TENSOR = 2 << 3 | 2
_FIXED = {1: 8, 5: 4}


@cache
def value_class() -> Any:
    """The class of one ``Value``.

    It comes from a descriptor pool of its own: a process that has imported MindSpore already holds messages of the
    same names in the default pool. The texts are declared as bytes, which is the same on the wire, because the
    implementations of protobuf differ in what they do with text that is not UTF-8. Nothing is ``required``, because
    they differ in whether they check it; the reader does.
    """
    # Imported here: a command that reads no checkpoint need not pay for it.
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="chaos/observe/ckpt.proto", package=_PACKAGE, syntax="proto2")
    tensor = file.message_type.add(name="TensorProto")
    tensor.field.add(name="dims", number=1, label=kind.LABEL_REPEATED, type=kind.TYPE_INT64)
    tensor.field.add(name="tensor_type", number=2, label=kind.LABEL_OPTIONAL, type=kind.TYPE_BYTES)
    tensor.field.add(name="tensor_content", number=3, label=kind.LABEL_OPTIONAL, type=kind.TYPE_BYTES)
    value = file.message_type.add(name="Value")
    value.field.add(name="tag", number=1, label=kind.LABEL_OPTIONAL, type=kind.TYPE_BYTES)
    value.field.add(
        name="tensor",
        number=2,
        label=kind.LABEL_OPTIONAL,
        type=kind.TYPE_MESSAGE,
        type_name=f".{_PACKAGE}.TensorProto",
    )
    value.field.add(name="maptensor", number=3, label=kind.LABEL_OPTIONAL, type=kind.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Value"))


def parse_value(raw: bytes) -> Any:
    """Parse one ``Value``.

    Raises ValueError, saying what is wrong, when ``raw`` is not exactly what a writer of this message makes: broken
    wire format, a field that the message does not have, a field that is there twice, a number in a longer form than
    needed. protobuf itself takes all but the first without a word.
    """
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    if _fields(memoryview(raw)) > MAX_FIELDS:
        raise ValueError(f"the record has more than {MAX_FIELDS} fields, which no checkpoint value has")
    message = value_class()()
    try:
        message.ParseFromString(raw)
    except (DecodeError, RecursionError, ValueError) as error:
        raise ValueError("the record is not a checkpoint value; the protobuf data is broken") from error
    if len(UnknownFieldSet(message)) or len(UnknownFieldSet(message.tensor)):
        raise ValueError("the record holds a field that a checkpoint value does not have")
    if message.ByteSize() != len(raw):
        raise ValueError(f"the record has {len(raw)} bytes, but its fields take {message.ByteSize()}")
    return message


def _fields(raw: memoryview) -> int:
    """How many fields a value has, those of its tensor included, as far as they can be told; counts to the limit only.

    What is broken is left to protobuf, which says so.
    """
    found, waiting = 0, [raw]
    while waiting:
        part = waiting.pop()
        at = 0
        while at < len(part) and found <= MAX_FIELDS:
            found += 1
            key, at = _varint(part, at)
            if key & 7 == 0:
                _, at = _varint(part, at)
            elif key & 7 == 2:
                length, at = _varint(part, at)
                if key == _TENSOR and part is raw:
                    waiting.append(part[at : at + length])
                at += length
            elif key & 7 in _FIXED:
                at += _FIXED[key & 7]
            else:
                break
    return found


def _varint(part: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value = 0
    for index, byte in enumerate(part[at : at + 10]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    return value, len(part)
