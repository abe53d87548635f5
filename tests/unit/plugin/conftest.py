"""Fixtures for the plugin's tests."""

from __future__ import annotations

import pytest

from tests.unit.plugin.project import Project


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with one scenario, kill-rank, and no answers yet."""
    project = Project(pytester, monkeypatch)
    project.scenario()
    return project
