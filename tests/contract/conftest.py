"""Runs are made with the key of the unit tests, not with this user's own."""

from __future__ import annotations

import tests.unit.conftest  # noqa: F401
