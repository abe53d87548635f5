"""A rank's place among the others: its communicator, which it leaves and joins again on the device's orders."""

from __future__ import annotations

import contextlib
import threading
from typing import Callable

from chaos.rehearsal.device.communication_errors import CommunicationAborted, CommunicationTimeout
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.device.generations import Generations


class Membership:
    """One rank's membership.

    ``make`` makes the communicator that meets at a place, without joining it; ``joined`` is called when all have come.
    """

    def __init__(
        self, generations: Generations, make: Callable[[str], Communicator], joined: Callable[[Communicator], None]
    ) -> None:
        self._generations = generations
        self._make = make
        self._tell_joined = joined
        self._current: Communicator | None = None
        self._joined = False
        self._joiner: threading.Thread | None = None
        self._lock = threading.Lock()
        """Held while the communicator is set or removed: a stop finds it, or is remembered for the next."""
        self._stop_ordered = False

    def join(self) -> Communicator:
        """Return the communicator of all ranks; joined at the first call, and again after a failed joining.

        Raises CommunicationAborted where the rank was ordered to stop and has not joined since: only ``resume`` and
        ``rebuild`` lead on from there.
        """
        with self._lock:
            joiner, waited = self._joiner, self._current
        if joiner is not None and waited is not None:
            joiner.join()
            if waited.aborted and not self._is_in(waited):
                raise CommunicationAborted("the join was stopped by order")
        with self._lock:
            if self._current is not None and self._joined:
                return self._current
            if self._stop_ordered:
                raise CommunicationAborted("the rank was stopped by order before it joined")
            communicator = self._current = self._make(self._generations.place())
        self._enter(communicator)
        return communicator

    def stop(self) -> None:
        """End the present collective or joining, and refuse further ones. From any thread."""
        self._generations.announce_next()
        with self._lock:
            self._stop_ordered = True
            if self._current is not None:
                self._current.abort()

    def leave(self) -> None:
        """End the communicator, whose ranks may be gone."""
        if self._joiner is not None and self._current is not None:
            self._current.abort()
            self._joiner.join()
        with self._lock:
            if self._current is not None:
                self._current.close()
            self._current, self._joined, self._joiner = None, False, None

    def resume(self) -> None:
        """Join the next communicator, of the same processes.

        This does not wait for the others: a rank whose clean-up fails never comes, and the others are not to find that
        out.
        """
        self._go_on(same_processes=True)
        with self._lock:
            self._current = self._make(self._generations.place())
            if self._stop_ordered:
                self._current.abort()
            self._joiner = threading.Thread(target=self._enter_if_all_come, name="communicator-join", daemon=True)
            self._joiner.start()

    def rebuild(self) -> None:
        """Join the next communicator, in which others may be new processes; returns when all have come."""
        self._go_on()
        self.join()

    def _go_on(self, *, same_processes: bool = False) -> None:
        """Go to the next generation. A stop from here on applies to that one."""
        self._stop_ordered = False
        self.leave()
        self._generations.enter_next(same_processes=same_processes)

    def _is_in(self, communicator: Communicator) -> bool:
        with self._lock:
            return self._joined and self._current is communicator

    def _enter(self, communicator: Communicator) -> None:
        communicator.join()
        self._joined = True
        self._tell_joined(communicator)

    def _enter_if_all_come(self) -> None:
        assert self._current is not None
        # The next user of the communicator tries again, and gets the reason for the failure then.
        with contextlib.suppress(CommunicationAborted, CommunicationTimeout):
            self._enter(self._current)
