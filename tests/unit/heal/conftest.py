"""Fixtures of the tests of healing."""

from __future__ import annotations

from tests.kit.runs.own_run import dead, reports, run

__all__ = ["dead", "reports", "run"]
