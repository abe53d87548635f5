"""A doubt: an observation that contradicts a proof."""

from __future__ import annotations

Doubt = tuple[str, tuple[str, ...]]
"""The observation that contradicts the proof, and its places."""
