"""Shared by the tests of the readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.observe.ckpt_writer import CkptWriter


@pytest.fixture(scope="session")
def data() -> Path:
    """The directory of real files."""
    return Path(__file__).with_name("data")


@pytest.fixture(scope="session")
def ckpt() -> CkptWriter:
    return CkptWriter()
