"""The control endpoints of a job, beside the SDK's controller and in ranks: they take orders from the harness."""

from __future__ import annotations

from typing import Any

from chaos.run.launch.channel import Connection


class ControlEndpoints:
    """The control endpoints of one attempt that have introduced themselves."""

    def __init__(self) -> None:
        self._controller: Connection | None = None
        self._workers: dict[int, Connection] = {}

    def add(self, endpoint: str, rank: int | None, connection: Connection) -> None:
        """Note a control endpoint; a later one takes the place of an earlier one."""
        if endpoint == "controller":
            self._controller = connection
        elif rank is not None:
            self._workers[rank] = connection

    def tell_controller(self, message: dict[str, Any]) -> bool:
        """Send a message to the endpoint beside the controller. False when there is none."""
        if self._controller is None:
            return False
        self._controller.answer(message)
        return True

    def tell_worker(self, rank: int, message: dict[str, Any]) -> bool:
        """Send a message to the endpoint in a rank. False when there is none."""
        connection = self._workers.get(rank)
        if connection is None:
            return False
        connection.answer(message)
        return True
