"""A doubt: what speaks against a proof."""

from __future__ import annotations

Doubt = tuple[str, tuple[str, ...]]
"""What was seen against the proof, and where."""
