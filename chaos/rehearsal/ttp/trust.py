"""The mutual proof of controller and processor that they are of the same run.

Both know the run's secret, and neither obeys the other before the proof: the port is open to every user of the host,
and a false controller could end all ranks. Each side proves it over two numbers that are used once, so that words
overheard on one connection are of no use on another. The secret itself is never sent.
"""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass, field

from chaos.rehearsal.ttp.wire import MAX_UNPROVEN, Link, Message

_NONCE_BYTES = 16


class UnprovenCaller(Exception):
    """The other side is not of this run. The text says why, without the other side's own words."""


@dataclass(frozen=True)
class Trust:
    """The identity of a party of this protocol: the run, and its secret."""

    run: str
    secret: bytes = field(repr=False)

    def challenge(self, link: Link) -> int:
        """Return the rank that has called and proved itself: the controller's side.

        Raises UnprovenCaller when nobody has.
        """
        first = link.receive(MAX_UNPROVEN)
        if first is None:
            raise UnprovenCaller("it sent nothing readable")
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
        """Return the controller's answer to the registration, None when it has sent none: the processor's side.

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
        content = json.dumps([side, self.run, rank, processors, controllers])
        return hmac.new(self.secret, content.encode(), "sha256").hexdigest()


def _same(shown: object, proof: str) -> bool:
    return isinstance(shown, str) and shown.isascii() and hmac.compare_digest(shown, proof)
