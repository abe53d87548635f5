"""Fixtures of the unit tests that the contract needs too."""

from __future__ import annotations

from tests.unit.conftest import clock as clock
from tests.unit.conftest import start as start
from tests.unit.conftest import token as token
