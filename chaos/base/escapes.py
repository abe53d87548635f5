"""Escapes of characters that a terminal cannot show."""

from __future__ import annotations


def escape(char: str) -> str:
    r"""Return the escape of a character; of a byte that is no character in this locale (PEP 383), as ``\xe6``."""
    return f"\\x{ord(char) - 0xDC00:02x}" if "\udc80" <= char <= "\udcff" else ascii(char)[1:-1]
