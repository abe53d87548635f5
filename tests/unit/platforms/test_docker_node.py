"""What is told of a container's node is the engine's word: not what it was asked for, nor what was before the fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker.errors
import pytest

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.docker import node as node_module
from chaos.platforms.docker import platform as platform_module
from chaos.platforms.docker.node import DockerNode
from chaos.platforms.docker.platform import DockerPlatform


def node_of(**container: Any) -> DockerNode:
    return DockerNode(
        1, "192.0.2.1", Path("/private"), cast(Any, SimpleNamespace(**container)), None, cast(Any, None), ""
    )


def refuse(*_: Any, **__: Any) -> None:
    raise docker.errors.APIError("conflict")


ACTS: dict[str, Callable[[DockerNode], None]] = {
    "stop": lambda node: node.stop(1.0),
    "restart": lambda node: node.restart(),
    "pause": lambda node: node.pause(),
    "kill": lambda node: node.kill(),
}


@pytest.mark.parametrize("name", list(ACTS))
def test_a_node_that_the_engine_refuses_to_touch_is_as_it_was(name: str) -> None:
    node = node_of(**{name: refuse})
    with pytest.raises(PlatformError, match="conflict"):
        ACTS[name](node)
    assert node.known == "running"


@pytest.mark.parametrize(
    ("name", "known"), [("stop", "gone"), ("restart", "gone"), ("pause", "frozen"), ("kill", "gone")]
)
def test_one_that_was_touched_is_known_to_be(name: str, known: str) -> None:
    node = node_of(**{name: lambda *_, **__: None})
    ACTS[name](node)
    assert node.known == known


@pytest.mark.parametrize(("given_up", "known"), [(2, "frozen"), (100, "running")])
def test_the_engine_is_asked_again_where_its_runtime_gives_up_to_freeze(given_up: int, known: str) -> None:
    asked: list[None] = []

    def pause() -> None:
        asked.append(None)
        if len(asked) <= given_up:
            raise docker.errors.APIError("OCI runtime pause failed: unable to freeze: unknown")

    node = node_of(pause=pause)
    if known == "frozen":
        node.pause()
    else:
        with pytest.raises(PlatformError, match="unable to freeze"):
            node.pause()
    assert (node.known, len(asked)) == (known, min(given_up + 1, 10))


def test_a_want_of_memory_before_the_fault_is_not_the_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    events, kills = [2], [3]
    monkeypatch.setattr(node_module, "oom_events", lambda *_: events[0])
    monkeypatch.setattr(node_module, "kernel_kills", lambda *_: kills[0])
    monkeypatch.setattr(node_module, "memory_used", lambda *_: 100)
    monkeypatch.setattr(node_module, "limit_memory", lambda *_: None)
    node = node_of()
    for fault in ("first", "second"):
        assert [node.limit_memory(fault, 10) for _ in range(2)] == [110, 110]
        assert node.out_of_memory() == {"limit": 110, "oom_events": 0, "oom_kills": 0}
        events[0], kills[0] = events[0] + 1, kills[0] + 2
        node.limit_memory(fault, 10)  # of another rank of the same fault
        assert node.out_of_memory() == {"limit": 110, "oom_events": 1, "oom_kills": 2}


class Client:
    closed = False

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("status", "told"), [("paused", "is paused"), ("created", "is created"), ("exited", None)])
def test_a_paused_node_is_not_told_to_be_no_more(
    status: str, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    monkeypatch.setattr(platform_module, "connect_again", lambda _: client)
    monkeypatch.setattr(platform_module, "node_container", lambda *_: SimpleNamespace(status=status))
    if told is None:
        assert DockerPlatform().reach({}, "token", 1) is None
    else:
        with pytest.raises(PlatformError, match=told):
            DockerPlatform().reach({}, "token", 1)
    assert client.closed
