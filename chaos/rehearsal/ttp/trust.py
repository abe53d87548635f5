"""How controller and processor prove to each other that they are of the same run.

Both know the run's secret, and neither obeys the other before that is proved: the port is open to every user of the
host, and whoever spoke for the controller could end all ranks. Each side proves it over two numbers that are used once,
so that what was heard on one connection is of no use on another. The secret itself is never sent.
"""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass, field

from chaos.rehearsal.ttp.wire import MAX_UNPROVEN, Link, Message

_NONCE_BYTES = 16


class UnprovenCaller(Exception):
    """The other side is not of this run. Says why; the other side's own words are not repeated."""


@dataclass(frozen=True)
class Trust:
    """What makes a party of this protocol: the run, and its secret."""

    run: str
    secret: bytes = field(repr=False)

    def challenge(self, link: Link) -> int:
        """The controller's side: the rank that has called and proved itself. Raises UnprovenCaller when nobody has."""
        first = link.receive(MAX_UNPROVEN)
        if first is None:
            raise UnprovenCaller("it said nothing that can be read")
        rank, theirs = first.get("rank"), first.get("nonce")
        if first.get("message") != "register" or type(rank) is not int or not isinstance(theirs, str):
            raise UnprovenCaller("it did not introduce itself as a rank does")
        if first.get("run") != self.run:
            raise UnprovenCaller("it is of another run")
        ours = secrets.token_hex(_NONCE_BYTES)
        link.send({"message": "challenge", "nonce": ours, "proof": self._proof("controller", rank, theirs, ours)})
        answer = link.receive(MAX_UNPROVEN)
        if answer is None or not _same(answer.get("proof"), self._proof("processor", rank, theirs, ours)):
            raise UnprovenCaller("it did not prove that it knows this run's secret")
        return rank

    def register(self, link: Link, rank: int) -> Message | None:
        """Return the processor's side: what the controller says to the registration, None when it has said nothing.

        Raises UnprovenCaller when the other side is no controller of this run.
        """
        ours = secrets.token_hex(_NONCE_BYTES)
        link.send({"message": "register", "run": self.run, "rank": rank, "nonce": ours})
        challenge = link.receive(MAX_UNPROVEN)
        if challenge is None:
            return None
        theirs = challenge.get("nonce")
        if not isinstance(theirs, str) or not _same(
            challenge.get("proof"), self._proof("controller", rank, ours, theirs)
        ):
            raise UnprovenCaller("it did not prove that it knows this run's secret")
        link.send({"message": "proof", "proof": self._proof("processor", rank, ours, theirs)})
        answer = link.receive()
        if answer is not None and answer.get("message") != "registered":
            raise UnprovenCaller("it does not answer as a controller does")
        return answer

    def _proof(self, side: str, rank: int, processors: str, controllers: str) -> str:
        said = json.dumps([side, self.run, rank, processors, controllers])
        return hmac.new(self.secret, said.encode(), "sha256").hexdigest()


def _same(shown: object, proof: str) -> bool:
    return isinstance(shown, str) and shown.isascii() and hmac.compare_digest(shown, proof)
