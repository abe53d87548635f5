"""The fabric of a rehearsal: the connection of one rank's device to the others, whatever framework trains on it.

It reports as a device does: a stopped collective, a collective that has waited too long, a collective that the watchdog
has ended. MindSpore 2.10 distinguishes errors by these texts.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from chaos.agent.start import Agent
from chaos.base.growth import Growing
from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.device.generations import Generations
from chaos.rehearsal.device.membership import Membership
from chaos.rehearsal.device.watchdog import POLL_SECONDS, start_watchdog

_COLLECTIVE_LIMIT_SECONDS = 120.0
_DESERTED_SECONDS = 10.0
"""How long unprotected ranks wait for a rank whose process has ended: nobody will come to stop them."""
_JOIN_LIMIT_SECONDS = 60.0
"""All ranks are started together; a rank that has not joined by then will not, and the others name it."""
_EACH_JOINS = 2.0
"""For a rank more on the same cores: the time that its process takes to start, twice over, while others start too."""
_EACH_REDUCES = 1.0


class Fabric:
    """One rank's place among the others: collectives that can be stopped, resumed, and rebuilt with new processes."""

    def __init__(self, agent: Agent) -> None:
        assert agent.place.rank is not None and agent.place.ranks is not None and agent.record is not None
        assert agent.barriers is not None and agent.configuration.socket is not None
        self._agent = agent
        self._record = agent.record
        self._rank = agent.place.rank
        self._ranks = agent.place.ranks
        self._failure: str | None = None
        agent.barriers.actions["link.down"] = lambda: self.join().sever()
        meeting = agent.configuration.meeting or os.path.dirname(agent.configuration.socket)
        self._generations = Generations(meeting, agent.configuration.attempt)
        self._membership = Membership(self._generations, self._communicator_at, self._joined)

    def reduce(self, array: Any, members: Collection[int] | None = None) -> Any:
        """Sum over these ranks (default: all).

        Raises RuntimeError with the text of a stopped device.
        """
        with self._as_device():
            return self.join().all_reduce(array, members)

    def send(self, other: int, array: Any) -> None:
        """Send an array to one rank, which must call :meth:`receive`. Raises RuntimeError as :meth:`reduce` does."""
        with self._as_device():
            self.join().send(other, array)

    def receive(self, other: int, like: Any) -> Any:
        """Receive an array with the type and shape of ``like`` from one rank.

        Raises RuntimeError as :meth:`reduce` does.
        """
        with self._as_device():
            return self.join().receive(other, like)

    @contextmanager
    def _as_device(self) -> Iterator[None]:
        """Raise what ends a communication as the error of a device."""
        try:
            yield
        except CommunicationTimeout as error:
            raise RuntimeError(
                f"Launch kernel failed: EI0002: notify wait timeout, HCCL_EXEC_TIMEOUT: {error}"
            ) from error
        except CommunicationAborted as error:
            if self._failure is not None:
                raise RuntimeError(f"Launch kernel failed: {self._failure}, found by the watchdog") from error
            raise RuntimeError(f"ForceStopError error occurs when execute: {error}") from error

    def awaited(self, array: Any, members: Collection[int] | None = None) -> list[Any]:
        """Return the other ranks' contributions to their next sum, for an array like this.

        Raises RuntimeError as :meth:`reduce` does.
        """
        try:
            return list(self.join().expected(array, members))
        except CommunicationAborted as error:
            raise RuntimeError(f"ForceStopError error occurs when execute: {error}") from error

    def join(self) -> Communicator:
        """Return the communicator of all ranks; joined at the first call."""
        return self._membership.join()

    def stop(self) -> None:
        """End the present collective, and refuse further ones. From any thread."""
        self._membership.stop()

    def resume(self) -> None:
        """Join a new communicator of the same processes in place of the stopped one."""
        self._membership.resume()

    def leave(self) -> None:
        """End the communicator, whose ranks may be gone."""
        self._membership.leave()

    def rebuild(self) -> None:
        """Join a new communicator, in which others may be new processes."""
        self._membership.rebuild()

    def switch_network(self, ranks: list[int], use_backup: list[bool]) -> bool:
        """Join a new communicator on the other network: other sockets in another directory. All ranks call this.

        A communicator on one host has no network card; the switch changes the path of its messages.
        """
        if not all(use_backup):
            return False
        self._generations.use_backup()
        self.leave()
        self.rebuild()
        self._record.write("network.joined", network=self._generations.network, ranks=list(ranks))
        return True

    def _communicator_at(self, place: str) -> Communicator:
        secret_file = self._agent.configuration.secret
        assert secret_file is not None
        with open(secret_file, "rb") as file:
            secret = file.read().strip()
        return Communicator(
            self._rank,
            range(self._ranks),
            place,
            secret,
            limit_seconds=self._limit_seconds(),
            on_refused=self._record_refused,
            join_seconds=Growing(_JOIN_LIMIT_SECONDS, _EACH_JOINS, self._ranks),
            address=self._agent.configuration.address,
            deserted_seconds=_DESERTED_SECONDS if self._is_unprotected() else None,
        )

    def _is_unprotected(self) -> bool:
        """Return whether no mechanism, no agent and no limit of the scenario's own ends a collective of this job."""
        settings = self._agent.configuration.settings
        switched = ":1" in os.environ.get("MS_ENABLE_TFT", "")
        return bool(settings.get("unprotected")) and not switched and not settings.get("hccl")

    def _limit_seconds(self) -> float:
        """Return how long a collective waits: the vendor's timeout, scaled, where the scenario has one."""
        hccl = self._agent.configuration.settings.get("hccl")
        if hccl:
            return float(hccl["exec_timeout"] * hccl["time_scale"])
        return Growing(_COLLECTIVE_LIMIT_SECONDS, _EACH_REDUCES, self._ranks)

    def _joined(self, communicator: Communicator) -> None:
        if communicator.port is not None:
            self._record.write("communicator.joined", port=communicator.port)
        self._watch_link(communicator)

    def _watch_link(self, communicator: Communicator) -> None:
        hccl = self._agent.configuration.settings.get("hccl")
        if hccl and hccl["watchdog"]:
            poll = POLL_SECONDS * hccl["time_scale"]
            start_watchdog(self._rank, poll, lambda: communicator.link_error, self._fail)

    def _fail(self, text: str) -> None:
        """End the collective that this rank waits in with an error; the watchdog calls it."""
        self._failure = text
        self.join().abort()

    def _record_refused(self, what: str) -> None:
        self._record.write("caller.refused", channel="communicator", what=what)
