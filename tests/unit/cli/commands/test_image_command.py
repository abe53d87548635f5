"""``chaos image``: what is made, how it is told, and an engine that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.scenario.models.defaults import SKELETON
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str]]:
    """The engine and the name of each image that is made."""
    seen: list[tuple[str | None, str]] = []

    def make(engine: str | None, name: str) -> str:
        seen.append((engine, name))
        return "sha256:abc"

    monkeypatch.setattr("chaos.platforms.docker.engine.connect", lambda url: url)
    monkeypatch.setattr("chaos.platforms.docker.image.make_skeleton", make)
    return seen


def test_the_image_of_the_nodes_is_made_and_named(chaos: Call, made: list[tuple[str | None, str]]) -> None:
    ended = chaos("image")
    assert (ended.code, ended.out) == (0, f"{SKELETON} is sha256:abc\n")
    ended = chaos("image", "--name", "mine:2", "--engine", "unix:///run/docker.sock", "--json")
    assert json.loads(ended.out) == {"schema_version": 1, "name": "mine:2", "id": "sha256:abc"}
    assert made == [(None, SKELETON), ("unix:///run/docker.sock", "mine:2")]


def test_an_engine_that_is_not_there_is_told(chaos: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(url: str | None) -> None:
        raise PlatformError(f"no Docker engine answers at {url}")

    monkeypatch.setattr("chaos.platforms.docker.engine.connect", connect)
    ended = chaos("image", "--engine", "unix:///nowhere.sock")
    assert ended.code not in (0, 1, 2)
    assert "no Docker engine answers at unix:///nowhere.sock" in ended.err
