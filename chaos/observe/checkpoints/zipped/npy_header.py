"""The header of a ``.npy`` file: type, order and shape of one array, as the text of a Python dictionary.

Source: the description of the format in numpy 2.3, numpy/lib/format.py. The text is matched and never evaluated. numpy
reads headers of at most 10,000 characters, unless the caller trusts the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from chaos.observe.checkpoints.checkpoint_error import UnknownContent
from chaos.observe.checkpoints.tensor import MAX_DIMS

MAX_TEXT = 10_000

MARK = b"\x93NUMPY"
_BEFORE_LENGTH = len(MARK) + 2  # the mark, and two bytes of version
_WIDTHS = {1: 2, 2: 4, 3: 4}
"""Bytes of the length of the text, by the first number of the version."""

_VALUE = r"'[^'\\]*'|True|False|\(\s*(?:\d{1,18}L?\s*,\s*)*(?:\d{1,18}L?\s*)?\)"
_PAIR = re.compile(rf"\s*'(?P<key>descr|fortran_order|shape)'\s*:\s*(?P<value>{_VALUE})\s*(?:,|(?=\}}\s*$))")
_KEYS = {"descr", "fortran_order", "shape"}
_TYPE = re.compile(r"(?P<order>[<>|=]?)(?P<kind>[a-zA-Z])(?P<size>\d{1,9})")
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_OBJECTS = re.compile(r"'descr'\s*:\s*'\|?O\d*'")


@dataclass(frozen=True)
class NpyHeader:
    """The array, as its header describes it.

    ``kind`` and ``size`` are the letter of its type and the bytes of a value (of a text: its characters), ``columns``
    whether the first index changes fastest in the file, ``length`` the bytes of the header itself.
    """

    kind: str
    size: int
    shape: tuple[int, ...]
    columns: bool
    length: int

    @property
    def dtype(self) -> str:
        """The name of the type of a number, which need not be a type that is read."""
        name = _KINDS.get(self.kind, self.kind)
        return name if name == "bool" and self.size == 1 else f"{name}{8 * self.size}"


def read_header(content: bytes) -> NpyHeader | None:
    """Return the header at the beginning of a file; None where more bytes are needed to know it.

    Raises UnknownContent for the header of an array that is not read.
    """
    if not content.startswith(MARK[: len(content)]):
        raise UnknownContent("is no array of numpy")
    if len(content) < _BEFORE_LENGTH:
        return None
    if (width := _WIDTHS.get(content[len(MARK)])) is None:
        raise UnknownContent(f"is in version {content[len(MARK)]} of numpy's format")
    begin = _BEFORE_LENGTH + width
    if len(content) < begin:
        return None
    length = int.from_bytes(content[_BEFORE_LENGTH:begin], "little")
    if length > MAX_TEXT:
        raise UnknownContent(f"has a header of {length} bytes, over the limit of {MAX_TEXT}")
    if len(content) < begin + length:
        return None
    return _of_text(content[begin : begin + length].decode("latin-1"), begin + length)


def _of_text(text: str, length: int) -> NpyHeader:
    pairs = _pairs(text)
    if _OBJECTS.search(text):
        raise UnknownContent("holds Python objects, which are pickled and never read")
    if pairs.keys() != _KEYS or (described := _TYPE.fullmatch(pairs["descr"].strip("'"))) is None:
        raise UnknownContent(f"has a type that is not read: {text.strip()[:100]}")
    kind, size = described["kind"], int(described["size"])
    if described["order"] == ">" and size > 1:
        raise UnknownContent("was saved with another order of bytes")
    if not pairs["shape"].startswith("(") or pairs["fortran_order"] not in ("True", "False"):
        raise UnknownContent(f"has a header that is not read: {text.strip()[:100]}")
    shape = tuple(int(number) for number in re.findall(r"\d+", pairs["shape"]))
    if len(shape) > MAX_DIMS:
        raise UnknownContent(f"has {len(shape)} dimensions, over the limit of {MAX_DIMS}")
    columns = pairs["fortran_order"] == "True" and sum(dim > 1 for dim in shape) > 1 and 0 not in shape
    return NpyHeader(kind, size, shape, columns, length)


def _pairs(text: str) -> dict[str, str]:
    """Return the entries of the dictionary; none where the text is no dictionary of simple values."""
    text = text.strip()
    if not text.startswith("{") or not text.endswith("}"):
        return {}
    pairs: dict[str, str] = {}
    at = 1
    while (match := _PAIR.match(text, at)) is not None and match["key"] not in pairs:
        pairs[match["key"]] = match["value"]
        at = match.end()
    return pairs if text[at:].strip() == "}" else {}
