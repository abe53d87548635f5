"""Fixtures of the tests of soaks."""

from __future__ import annotations

from tests.kit.runs.own_run import dead, reports, run

__all__ = ["dead", "reports", "run"]
