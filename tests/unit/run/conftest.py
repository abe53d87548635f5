"""Fixtures of the run's tests."""

from __future__ import annotations

from tests.kit.runs.own_run import dead, reports, run

__all__ = ["dead", "reports", "run"]
