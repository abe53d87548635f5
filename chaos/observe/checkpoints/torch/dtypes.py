"""PyTorch's names of types, and the names that this package uses for them.

Source: PyTorch 2.13, torch/storage.py and the docs of torch.dtype. Quantized types and types of less than a byte are
left out: a checkpoint with them is not read.
"""

from __future__ import annotations

DTYPES = {
    "torch.bool": "bool",
    "torch.uint8": "uint8",
    "torch.int8": "int8",
    "torch.int16": "int16",
    "torch.uint16": "uint16",
    "torch.int32": "int32",
    "torch.uint32": "uint32",
    "torch.int64": "int64",
    "torch.uint64": "uint64",
    "torch.float16": "float16",
    "torch.bfloat16": "bfloat16",
    "torch.float32": "float32",
    "torch.float64": "float64",
    "torch.complex64": "complex64",
    "torch.complex128": "complex128",
    "torch.float8_e4m3fn": "float8_e4m3fn",
    "torch.float8_e4m3fnuz": "float8_e4m3fnuz",
    "torch.float8_e5m2": "float8_e5m2",
    "torch.float8_e5m2fnuz": "float8_e5m2fnuz",
    "torch.float8_e8m0fnu": "float8_e8m0fnu",
}
"""The types by their names in a pickle."""

STORAGES = {
    "torch.BoolStorage": "bool",
    "torch.ByteStorage": "uint8",
    "torch.CharStorage": "int8",
    "torch.ShortStorage": "int16",
    "torch.IntStorage": "int32",
    "torch.LongStorage": "int64",
    "torch.HalfStorage": "float16",
    "torch.BFloat16Storage": "bfloat16",
    "torch.FloatStorage": "float32",
    "torch.DoubleStorage": "float64",
    "torch.ComplexFloatStorage": "complex64",
    "torch.ComplexDoubleStorage": "complex128",
    "torch.storage.UntypedStorage": "uint8",
}
"""The classes that name the type of a storage; the type of a tensor on an untyped one stands beside it."""
