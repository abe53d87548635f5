"""The control endpoint beside the controller obeys the harness, and a pause ends with the process that asked for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.agent.configuration import Configuration, Place
from chaos.base.wait import wait_for
from chaos.rehearsal import control_endpoint
from chaos.run.launch.channel import Channel, EndpointHello

SECONDS = 60.0
SECRET = "s" * 64


class Controller:
    """The SDK's module for the cluster's agent: keeps what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def tft_notify_controller_stop_train(self, ranks: dict[int, int], kind: str, timeout: int) -> int:
        self.calls.append((kind, timeout))
        return 0

    def tft_notify_controller_change_strategy(self, strategy: str) -> int:
        self.calls.append((strategy,))
        return 0


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    made = Controller()
    package = SimpleNamespace(controller_ttp=made)
    monkeypatch.setitem(sys.modules, "mindio_ttp", package)
    monkeypatch.setitem(sys.modules, "mindio_ttp.controller_ttp", made)
    return made


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Channel]:
    (tmp_path / "secret").write_text(SECRET)
    channel = Channel(tmp_path / "agents", run="run-1", secret=SECRET)
    yield channel
    channel.close()


class Imports:
    """Watched modules and their hooks."""

    def __init__(self) -> None:
        self.hooks: dict[str, Callable[[Any], None]] = {}

    def watch(self, module: str, hook: Callable[[Any], None]) -> None:
        self.hooks[module] = hook


@pytest.fixture
def started(tmp_path: Path, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> EndpointHello:
    """The control endpoint of a controller that has been started, in a process outside the ranks."""
    monkeypatch.setenv("MS_ENABLE_TFT", "{TTP:1,TSP:1}")
    configuration = Configuration(
        run="run-1",
        attempt="train",
        history=str(tmp_path),
        socket=str(tmp_path / "agents"),
        secret=str(tmp_path / "secret"),
    )
    imports = Imports()
    agent = SimpleNamespace(configuration=configuration, place=Place("other", None, 4), imports=imports)
    control_endpoint.install(agent)  # type: ignore[arg-type]
    module = SimpleNamespace(tft_start_controller=lambda *arguments: "started")
    for hook in imports.hooks.values():
        hook(module)
    assert module.tft_start_controller("127.0.0.1", 1) == "started"
    hello = wait_for("hello", channel.messages.get, seconds=SECONDS)
    assert isinstance(hello, EndpointHello)
    assert (hello.endpoint, hello.rank, hello.pid, hello.attempt) == ("controller", None, os.getpid(), "train")
    assert channel.messages.empty()  # one control endpoint, though the function has two names
    return hello


def test_the_endpoint_pauses_once_and_goes_on_when_told(started: EndpointHello, controller: Controller) -> None:
    started.connection.answer({"message": "welcome"})
    for _ in range(4):
        started.connection.answer({"message": "pause", "fault": "pause", "limit": 62})
    started.connection.answer({"message": "continue", "fault": "pause"})
    wait_for("orders", lambda: len(controller.calls) >= 2, seconds=SECONDS)
    started.connection.answer({"message": "continue", "fault": "pause"})
    started.connection.answer({"message": "pause", "fault": "other", "limit": 61})
    wait_for("orders", lambda: len(controller.calls) >= 3, seconds=SECONDS)
    assert controller.calls == [("pause", 62), ("continue",), ("pause", 61)]


def test_a_pause_ends_when_the_one_who_asked_for_it_is_gone(started: EndpointHello, controller: Controller) -> None:
    started.connection.answer({"message": "welcome"})
    started.connection.answer({"message": "pause", "fault": "pause", "limit": 600})
    wait_for("pause", lambda: controller.calls == [("pause", 600)], seconds=SECONDS)
    started.connection.close()
    wait_for("end", lambda: controller.calls[1:] == [("continue",)], seconds=SECONDS)


def test_without_tsp_there_is_no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MS_ENABLE_TFT", "{TTP:1}")
    imports = Imports()
    control_endpoint.install(SimpleNamespace(place=Place("rank", 0, 4), imports=imports))  # type: ignore[arg-type]
    assert imports.hooks == {}
