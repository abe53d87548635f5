"""Proofs that a record was made with a user's key: an HMAC over its content, for one run and one place only."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

PROOF = "proof"
"""Key of a sealed record that holds its proof; it is the last key of a line."""


class Seal:
    """Makes and checks the proofs of one run. Each run has a key of its own, so nothing can be moved between runs."""

    def __init__(self, key: bytes, run: str) -> None:
        """Derive the key of the run; ``key`` is the user's, ``run`` the identity (CHAOS_RUN) of the run."""
        self._key = hmac.digest(key, b"chaos run\0" + run.encode("utf-8", "surrogatepass"), "sha256")

    def document(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record with its proof."""
        content = _content(record)
        return {**content, PROOF: self._proof(b"document", content)}

    def proves_document(self, record: Mapping[str, Any]) -> bool:
        """Return whether the record has a proof made with this key, for exactly this content."""
        return self._agrees(record, b"document")

    def line(self, record: Mapping[str, Any], before: bytes) -> dict[str, Any]:
        """Return the record of a file of lines with its proof. ``before`` is the line before it as written there.

        The proof covers that line, so no line can be inserted between, moved, or removed before it.
        """
        content = _content(record)
        return {**content, PROOF: self._proof(b"line" + hashlib.sha256(before).digest(), content)}

    def proves_line(self, record: Mapping[str, Any], before: bytes) -> bool:
        """Return whether the record has a proof made with this key, for exactly this content after this line."""
        return self._agrees(record, b"line" + hashlib.sha256(before).digest())

    def _agrees(self, record: Mapping[str, Any], place: bytes) -> bool:
        shown = record.get(PROOF)
        if not isinstance(shown, str) or not shown.isascii():
            return False
        try:
            return hmac.compare_digest(shown, self._proof(place, _content(record)))
        except (ValueError, RecursionError):  # content that no writer makes
            return False

    def _proof(self, place: bytes, content: Mapping[str, Any]) -> str:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hmac.new(self._key, place + b"\0" + text.encode("ascii"), "sha256").hexdigest()


def _content(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != PROOF}
