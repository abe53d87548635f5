"""Changes parts of directories of ``torch.distributed.checkpoint`` by hand, without the reader, which is under test.

A file of a rank is a row of items, and each item that holds a tensor is a ZIP archive of ``torch.save``. Its values are
stored uncompressed, with their CRC in the archive. Here values change in their place, and the CRC with them.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from chaos.selftest.defect import Mutate, NothingToMutate

_END = b"PK\x05\x06"
_END_SIZE = 22
_LOCAL_HEADER = 30

Change = Callable[[tuple[float, ...]], tuple[float, ...]]
"""Returns other values for those of a tensor, or the same."""


def dcp_stored(pattern: str, change: Change) -> Mutate:
    """Return a mutation of the 32-bit floats in the files of ranks that match, below the job's checkpoints.

    It raises NothingToMutate if there is no such file, or if nothing changes.
    """

    def mutate(run_dir: Path) -> None:
        paths = sorted((run_dir / "job" / "checkpoints").glob(pattern))
        changed = 0
        for path in paths:
            content = path.read_bytes()
            new = b"".join(_changed(item, change) for item in _items(content))
            assert len(new) == len(content)
            changed += new != content
            path.write_bytes(new)
        if not changed:
            raise NothingToMutate(f"no value in {pattern} is changed")

    return mutate


def _items(content: bytes) -> list[bytes]:
    """Return the items of a file: what lies before the first archive, the archives, what lies behind the last."""
    items, begin = [], 0
    while (end := content.find(_END, begin)) >= 0:
        items.append(content[begin : end + _END_SIZE])
        begin = end + _END_SIZE
    return [*items, content[begin:]]


def _changed(item: bytes, change: Change) -> bytes:
    if not zipfile.is_zipfile(io.BytesIO(item)):
        return item
    with zipfile.ZipFile(io.BytesIO(item)) as archive:
        members = [info for info in archive.infolist() if info.filename.split("/", 1)[-1] == "data/0"]
    for info in members:
        name, extra = struct.unpack_from("<HH", item, info.header_offset + 26)
        begin = info.header_offset + _LOCAL_HEADER + name + extra
        old = item[begin : begin + info.file_size]
        if len(old) % 4:
            continue
        values = struct.unpack(f"<{len(old) // 4}f", old)
        new = struct.pack(f"<{len(values)}f", *change(values))
        before, after = (struct.pack("<I", zlib.crc32(data)) for data in (old, new))
        behind = item[begin + len(old) :].replace(before, after)
        item = item[: info.header_offset] + item[info.header_offset : begin].replace(before, after) + new + behind
    return item
