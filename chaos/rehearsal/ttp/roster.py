"""The controller's record of every rank."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from chaos.rehearsal.ttp.status import NORMAL
from chaos.rehearsal.ttp.timings import Timings
from chaos.rehearsal.ttp.wire import Link, Message


@dataclass
class Member:
    """One registered rank. ``step`` is the last step whose update it has reported as done.

    ``reboot``: this process takes the place of a lost one.
    """

    rank: int
    link: Link
    heard: float
    link_broken: float | None = None
    step: int = 0
    updating: bool = False
    status: int = NORMAL
    left: bool = False
    reboot: bool = False
    replies: dict[str, Message] = field(default_factory=dict)


class Roster:
    """All registered ranks; changed by the receiving threads, read by the state machine."""

    def __init__(self, timings: Timings, now: Callable[[], float] = time.monotonic) -> None:
        self._timings = timings
        self._now = now
        self._members: dict[int, Member] = {}
        self._changed = threading.Condition()

    def add(self, rank: int, link: Link, *, reboot: bool = False) -> Member:
        """Register a rank, in place of an earlier process of it."""
        with self._changed:
            member = Member(rank, link, self._now(), reboot=reboot)
            self._members[rank] = member
            self._changed.notify_all()
            return member

    def members(self) -> list[Member]:
        """Return all ranks that have registered and not left, by number."""
        with self._changed:
            return [self._members[rank] for rank in sorted(self._members) if not self._members[rank].left]

    def knows(self, rank: int) -> bool:
        """Return whether a rank has ever registered."""
        with self._changed:
            return rank in self._members

    def member(self, rank: int) -> Member:
        """Return one rank."""
        return self._members[rank]

    def hear(self, member: Member, message: Message) -> None:
        """Record a heartbeat or a reply; both carry the rank's state."""
        with self._changed:
            member.heard = self._now()
            member.step = message.get("step", member.step)
            member.updating = message.get("updating", member.updating)
            member.status = message.get("status", member.status)
            if message["message"] == "reply":
                member.replies[message["to"]] = message
            elif message["message"] == "leave":
                member.left = True
            self._changed.notify_all()

    def lose_link(self, member: Member) -> None:
        """Note that the connection to a rank has broken."""
        with self._changed:
            member.link_broken = member.link_broken or self._now()
            self._changed.notify_all()

    def silent_ms(self, member: Member) -> int:
        """Return the milliseconds since the rank was last heard."""
        return int((self._now() - member.heard) * 1000)

    def lost(self, member: Member) -> bool:
        """Return whether the rank counts as lost by now."""
        if self._now() - member.heard > self._timings.lost_after:
            return True
        limit = self._timings.link_lost_after
        return limit is not None and member.link_broken is not None and self._now() - member.link_broken > limit

    def wait_until(self, condition: Callable[[], bool], seconds: float, *, poll: float) -> bool:
        """Wait for a condition that messages of ranks can make true, or time alone; for the latter it is polled too."""
        deadline = self._now() + seconds
        while not condition():
            left = deadline - self._now()
            if left <= 0:
                return False
            with self._changed:
                self._changed.wait(min(poll, left))
        return True

    def ask(
        self, members: list[Member], message: str, seconds: float, *, patience: float | None = None, **fields: Any
    ) -> list[Member]:
        """Send a message to ranks and wait for their replies. Returns the ranks that did not answer in time.

        ``patience`` is for actions in which one rank may wait for another: when one of them dies, the wait for the
        others ends, and when one fails, it goes on for only so many seconds more, in which every rank that need not
        wait for it answers.
        """
        for member in members:
            member.replies.pop(message, None)
            member.link.send({"message": message, **fields})

        def over() -> bool:
            silent = [member for member in members if message not in member.replies]
            died = [member for member in silent if member.link_broken is not None]
            return len(silent) == len(died) or (patience is not None and bool(died))

        def failed() -> bool:
            return any(member.replies.get(message, {}).get("result", 0) != 0 for member in members)

        with self._changed:
            self._changed.wait_for(lambda: over() or (patience is not None and failed()), seconds)
            if patience is not None and failed():
                self._changed.wait_for(over, patience)
            return [member for member in members if message not in member.replies]
