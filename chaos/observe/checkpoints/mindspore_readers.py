"""The readers of the two formats that MindSpore writes: ``.ckpt`` and safetensors."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import ClassVar

from chaos.observe.checkpoints.checkpoint_error import CheckpointNotSupported
from chaos.observe.checkpoints.checkpoint_reader import CheckpointReader
from chaos.observe.checkpoints.ckpt_format import RECORD, parse_ckpt
from chaos.observe.checkpoints.parsed import Parsed
from chaos.observe.checkpoints.safetensors_format import looks_like_safetensors, parse_safetensors

_COUNTED = re.compile(r".+-\d{1,18}_\d{1,18}\.ckpt")
"""The names that MindSpore and MindFormers give: ``PREFIX-EPOCH_STEP.ckpt``. Other programs write ``.ckpt`` as well."""

_ENCRYPTED = {
    bytes.fromhex("d85e3a7f"): "AES-GCM",
    bytes.fromhex("d95e3a7f"): "AES-CBC",
    bytes.fromhex("da5e3a7f"): "SM4-CBC",
}
"""The first bytes of a file that MindSpore has encrypted (``enc_key``), as 2.10 writes them."""


class CkptReader(CheckpointReader):
    """Reads MindSpore's ``.ckpt``, and says of an encrypted one that it is encrypted."""

    name: ClassVar[str] = "ckpt"
    about: ClassVar[str] = "a MindSpore checkpoint"
    endings: ClassVar[tuple[str, ...]] = (".ckpt",)

    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether the file starts with a record's mark, or with the mark of encrypted content."""
        if looks_like_safetensors(head, size):  # with a header as long as a record's mark is large
            return False
        return head[:1] == bytes([RECORD]) or head[:4] in _ENCRYPTED

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read a whole ``.ckpt``. Raises CheckpointNotSupported for an encrypted one."""
        mode = _ENCRYPTED.get(stream.read(4))
        stream.seek(0)
        if mode is not None:
            raise CheckpointNotSupported(path, f"MindSpore has encrypted the content ({mode})", 0)
        return parse_ckpt(path, stream, size)

    def names(self, name: str) -> bool:
        """Return whether the name has MindSpore's epoch and step."""
        return _COUNTED.fullmatch(name) is not None


class SafetensorsReader(CheckpointReader):
    """Reads ``.safetensors``, which MindSpore and MindFormers write and many other programs too."""

    name: ClassVar[str] = "safetensors"
    about: ClassVar[str] = "safetensors"
    endings: ClassVar[tuple[str, ...]] = (".safetensors",)

    def recognises(self, head: bytes, size: int) -> bool:
        """Return whether a length and a JSON object can begin the file."""
        return looks_like_safetensors(head, size)

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        """Read a whole ``.safetensors``."""
        return parse_safetensors(path, stream, size)

    def names(self, name: str) -> bool:
        """Return whether the ending is the format's own."""
        return name.endswith(".safetensors")


CKPT = CkptReader()
SAFETENSORS = SafetensorsReader()
