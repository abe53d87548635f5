"""Defaults of a scenario's keys that help texts name too. Light: it imports no model."""

from __future__ import annotations

DEFAULT_KIND = "rehearsal"
"""Kind of a job that names none."""

SKELETON = "chaos-node:host"
"""Name of the image that borrows this host's Python."""
