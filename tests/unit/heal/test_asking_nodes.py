"""After a run each node is asked through its remote helper, and one that cannot be is told with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from chaos.base.clock import Clock
from chaos.heal import undo_nodes
from chaos.history.ledger import UndoStep
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.client import HelperClient
from chaos.platforms.kind import PlatformKind
from chaos.platforms.nodes import Node
from chaos.run.watch.nodes_left import record_afterwards, record_on_nodes

NODES = UndoStep("nodes", None, "end-nodes", {"platform": "trial"})


class Platform:
    """A platform of the test's own."""

    name = "trial"
    answer: ClassVar[list[str] | str] = []

    def simulated(self, nodes: int) -> None: ...

    def open(self, site: object) -> None: ...

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> None: ...

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient | None:
        if node == 1:
            raise PlatformError("host h1 does not answer")
        return None

    def left(self, arguments: Mapping[str, Any], token: str) -> list[str]:
        if isinstance(self.answer, str):
            raise PlatformError(self.answer)
        return self.answer


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> type[Platform]:
    monkeypatch.setattr(Platform, "answer", [])
    monkeypatch.setattr(undo_nodes, "platform_kind", lambda name: PlatformKind(name, cast("Any", Platform)))
    return Platform


@contextmanager
def writing(directory: Path, clock: Clock) -> Iterator[HistoryWriter]:
    directory.mkdir()
    with HistoryWriter(directory / "harness.jsonl", writer="harness", run="r", clock=clock) as history:
        yield history


def node(number: int, helper: object) -> Node:
    return cast("Node", SimpleNamespace(number=number, helper=helper, known="running", private=Path("/private")))


class RemoteHelper:
    """A remote helper that tells what it finds."""

    lost: str | None = None

    def __init__(self, **left: list[str]) -> None:
        self._left = {"processes": [], "mounts": [], **left}

    def leftovers(self, directories: list[str]) -> dict[str, list[str]]:
        assert directories == ["/run/dir", "/private"]
        return self._left

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.usefixtures("platform")
def test_each_node_says_or_it_is_said_why_not(tmp_path: Path, clock: Clock) -> None:
    lost = SimpleNamespace(lost="its stream has ended")
    nodes = [node(0, RemoteHelper(processes=["7 (sleep)"], mounts=["/run/dir/x"])), node(1, lost), node(2, lost)]
    with writing(tmp_path / "history", clock) as history:
        record_on_nodes(history, "r", [NODES], nodes, ["/run/dir"])
    found = [event.data for event in read_history(tmp_path / "history").select("hygiene.node")]
    assert found == [
        {"node": 0, "orphans": ["7 (sleep)"], "mounts": ["/run/dir/x"]},
        {"node": 1, "unasked": "host h1 does not answer"},
        {"node": 2, "gone": True},
    ]


@pytest.mark.usefixtures("platform")
def test_a_node_with_a_network_of_its_own_tells_the_rules_that_are_left(tmp_path: Path, clock: Clock) -> None:
    with_rules = SimpleNamespace(
        number=0,
        helper=RemoteHelper(),
        known="running",
        private=Path("/private"),
        rules_left=lambda: ["a limit on node 0"],
    )
    with writing(tmp_path / "history", clock) as history:
        record_on_nodes(history, "r", [NODES], [cast("Node", with_rules)], ["/run/dir"])
    (event,) = read_history(tmp_path / "history").select("hygiene.node")
    assert event.data["rules"] == ["a limit on node 0"]


@pytest.mark.parametrize(
    ("answer", "shown"), [(["network x"], {"left": ["network x"]}), ("no engine", {"unasked": "no engine"})]
)
def test_the_platform_says_what_it_still_has(
    platform: type[Platform],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    clock: Clock,
    answer: list[str] | str,
    shown: dict[str, Any],
) -> None:
    monkeypatch.setattr(platform, "answer", answer)
    with writing(tmp_path / "history", clock) as history:
        record_afterwards(history, "r", [NODES])
    (event,) = read_history(tmp_path / "history").select("hygiene.nodes")
    assert event.data == {"platform": "trial", **shown}
