"""Fixtures for the plugin's tests."""

from __future__ import annotations

import pytest

from tests.unit.plugin.project import Project


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """A project with one scenario, kill-rank, and no answers yet."""
    project = Project(pytester)
    project.scenario()
    return project
