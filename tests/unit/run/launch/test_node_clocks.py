"""The clocks of other hosts are measured again and again: what a host that goes was last known by is not long ago."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from chaos.base.clock import Clock, boot_id
from chaos.history.host_clock import Offset
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import HelperLost
from chaos.run.launch.node_clocks import EVERY_SECONDS, NodeClocks


class Node:
    """A node whose remote helper tells its clock as long as it is there."""

    known = "running"

    def __init__(self, number: int, boot: str) -> None:
        self.number, self.address = number, "192.0.2.1"
        self.helper = SimpleNamespace(
            lost=None, introduction=SimpleNamespace(host=f"h{number}", boot=boot), clock_offset=self._offset
        )
        self.broken = False

    def _offset(self, clock: Clock) -> Offset:
        if self.broken:
            raise HelperLost("it does not answer")
        return Offset(clock.mono(), 5, 1)


def measured(tmp_path: Path) -> list[Any]:
    return [event.data["node"] for event in read_history(tmp_path).select("clock", attempt="train")]


def test_clocks_of_other_boots_are_measured_every_few_seconds(tmp_path: Path, clock: Clock) -> None:
    nodes = [Node(0, boot_id()), Node(1, "other"), Node(2, "another"), Node(3, "third")]
    with HistoryWriter(tmp_path / "harness.jsonl", writer="harness", run="r", clock=clock) as history:
        clocks = NodeClocks(history, "train", cast(Any, nodes), clock)
        clocks.look()
        assert measured(tmp_path) == []
        clock.sleep(EVERY_SECONDS)
        clocks.look()
        clocks.look()
        assert measured(tmp_path) == [1, 2, 3]
        nodes[1].helper.lost, nodes[2].broken, nodes[3].known = "gone", True, "frozen"
        clock.sleep(EVERY_SECONDS)
        clocks.look()
        assert measured(tmp_path) == [1, 2, 3]
        clocks.again()
    assert measured(tmp_path) == [1, 2, 3, 0]
