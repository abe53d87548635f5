"""Fixtures of the platforms' tests."""

from __future__ import annotations

from tests.unit.machine.conftest import adopting, found, spec, start_helper

__all__ = ["adopting", "found", "spec", "start_helper"]
