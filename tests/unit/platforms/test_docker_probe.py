"""A scenario on Docker is refused, or skipped, where the engine or the image of its nodes is missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.machine.probe import Machine
from chaos.platforms.docker.kind import KIND, NETWORKS
from chaos.platforms.docker.probe import docker, docker_image
from chaos.scenario.models.docker import Docker
from chaos.scenario.models.scenario import Scenario


class Engine:
    """An engine with some images; None where none answers."""

    def __init__(self, *images: str) -> None:
        self._images = images
        self.images = SimpleNamespace(list=lambda name: [image for image in self._images if image == name])

    def version(self) -> dict[str, str]:
        return {"Version": "26.1.5"}

    def close(self) -> None:
        pass


def answering(engine: Engine | None, monkeypatch: pytest.MonkeyPatch) -> Machine:
    def connect(address: str | None) -> Any:
        del address
        if engine is None:
            raise PlatformError("the Docker engine cannot be reached: no such file")
        return engine

    monkeypatch.setattr("chaos.platforms.docker.engine.connect", connect)
    return Machine(version=lambda package: "7.1.0")


def test_an_engine_with_the_image_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = answering(Engine("chaos-node:host"), monkeypatch)
    assert (docker(machine).ok, docker_image(machine).ok) == (True, True)


def test_an_engine_without_the_image_lacks_it_and_says_how_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = answering(Engine("another:image"), monkeypatch)
    found = docker_image(machine)
    assert docker(machine).ok
    assert (found.need, found.ok, found.seen, found.advice) == (
        "docker-image",
        False,
        "the engine has no image chaos-node:host",
        "make it: chaos image",
    )


def test_without_an_engine_the_engine_is_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = docker_image(answering(None, monkeypatch))
    assert (found.need, found.ok, found.seen) == ("docker-image", False, "no engine answers")


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        (None, ("docker-image",)),
        (Docker(), ("docker-image",)),
        (Docker(image="own:image", python="/usr/bin/python3"), ("docker",)),
        (Docker(engine="tcp://10.0.0.1:2375"), ()),
    ],
)
def test_a_scenario_needs_the_image_that_it_names(settings: Docker | None, needs: tuple[str, ...]) -> None:
    cluster = {"ranks": 2, "platform": "docker", "docker": settings}
    scenario = Scenario.model_validate(
        {"chaos": 1, "name": "own", "cluster": cluster, "job": {"kind": "plain", "steps": 4}}
    )
    assert KIND.needed(scenario) == needs
    assert NETWORKS.needed(scenario) == (*needs, "network-namespaces")
