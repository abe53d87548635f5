"""A writer of ``numpy.savez`` files that shares no code with the reader, and needs no numpy."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def npy(descr: str, shape: Sequence[int], content: bytes, *, columns: bool = False, version: int = 1) -> bytes:
    """The bytes of an array: the mark, its header as numpy pads it, the values."""
    dims = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    text = f"{{'descr': {descr!r}, 'fortran_order': {columns}, 'shape': ({dims}), }}"
    return of_text(text, content, version)


def of_text(text: str, content: bytes = b"", version: int = 1) -> bytes:
    """The bytes of an array with this text as its header."""
    before = 10 if version == 1 else 12
    header = (text + " " * (-(before + len(text) + 1) % 64) + "\n").encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + content


def floats(*values: float, shape: Sequence[int] | None = None) -> bytes:
    """An array of float32."""
    return npy("<f4", [len(values)] if shape is None else shape, struct.pack(f"<{len(values)}f", *values))


def whole(value: int) -> bytes:
    """A single whole number, as numpy makes it of Python's."""
    return npy("<i8", [], struct.pack("<q", value))


def archive(arrays: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """The bytes of a file. As numpy does, each member has the fields of a large member in its header."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as packed:
        for name, content in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = compression
            with packed.open(entry, "w", force_zip64=True) as member:
                member.write(content)
    return target.getvalue()


def job_arrays(step: int) -> dict[str, bytes]:
    """The state of a small job, as its script saves it."""
    return {
        "weight": floats(*(0.5 + step * 0.25 + number for number in range(6)), shape=[2, 3]),
        "momentum.weight": floats(*(step * 0.1,) * 6, shape=[2, 3]),
        "step_num": whole(step),
    }


def write_npz(path: Path, step: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(archive(job_arrays(step)))
    return path
