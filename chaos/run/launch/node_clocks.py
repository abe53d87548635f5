"""The clocks of a launch's nodes: measured before it, at its end, and every few seconds between.

A clock is steered while it runs, and a node may go without a word: the last measurement must be recent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from chaos.base.clock import Clock, boot_id
from chaos.history.host_clock import EVENT
from chaos.machine.job.protocol import PlatformError
from chaos.platforms.nodes import Node
from chaos.run.progress import Recorder

EVERY_SECONDS = 5.0
"""Between two measurements while a launch is followed."""


class NodeClocks:
    """The clocks of the nodes in one attempt."""

    def __init__(self, history: Recorder, attempt: str, nodes: Sequence[Node], clock: Clock) -> None:
        self._history = history
        self._attempt = attempt
        self._nodes = nodes
        self._clock = clock
        self._due = clock.mono() + int(EVERY_SECONDS * 1e9)

    def look(self) -> None:
        """Measure again where it is time. A node of the harness's own boot shares its clock and is asked less often."""
        if self._clock.mono() >= self._due:
            own_boot = boot_id()
            self._measure([node for node in self._nodes if node.helper.introduction.boot != own_boot])
            self._due = self._clock.mono() + int(EVERY_SECONDS * 1e9)

    def again(self) -> None:
        """Measure the clocks of all nodes; a lost node yields nothing."""
        self._measure(self._nodes)

    def _measure(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node.known == "running" and node.helper.lost is None:
                with suppress(PlatformError):
                    self.record(node)

    def record(self, node: Node) -> None:
        """Record how far a node's monotonic clock is ahead of the harness's, in ns, and how wrong that may be.

        Raises PlatformError.
        """
        offset, who = node.helper.clock_offset(self._clock), node.helper.introduction
        self._history.record(
            EVENT,
            attempt=self._attempt,
            node=node.number,
            host=who.host,
            boot=who.boot,
            address=node.address,
            at=offset.at,
            offset=offset.offset,
            error=offset.error,
        )
