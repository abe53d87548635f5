"""One value of a ``.ckpt`` as protobuf itself reads it: what the reader of the fields is held against."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

_PACKAGE = "chaos.tests.ckpt"


@cache
def _value_class() -> Any:
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="chaos/tests/ckpt.proto", package=_PACKAGE, syntax="proto2")
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


def told_by_protobuf(raw: bytes) -> tuple[object, ...] | str:
    """Tag, map tensor, dims, type and content, None for what is not there; or why it is refused."""
    message = _value_class()()
    try:
        message.ParseFromString(raw)
    except (DecodeError, RecursionError, ValueError):
        return "the record is not a checkpoint value; the protobuf data is broken"
    tensor = message.tensor
    if len(UnknownFieldSet(message)) or len(UnknownFieldSet(tensor)):
        return "the record holds a field that a checkpoint value does not have"
    if message.ByteSize() != len(raw):
        return f"the record has {len(raw)} bytes, but its fields take {message.ByteSize()}"
    return (
        message.tag if message.HasField("tag") else None,
        message.maptensor if message.HasField("maptensor") else None,
        tuple(tensor.dims),
        tensor.tensor_type if tensor.HasField("tensor_type") else None,
        tensor.tensor_content if tensor.HasField("tensor_content") else None,
    )
