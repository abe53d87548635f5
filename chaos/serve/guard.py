"""The entrance: a request is answered only if it was meant for this server, reads only, and knows the token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from chaos.serve.address import Address
from chaos.serve.response import Response, refusal

METHODS = ("GET", "HEAD")
_TOKEN_BYTES = 32


def new_token() -> str:
    """Return a token of 256 random bits, as a part of a URL."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


@dataclass(frozen=True)
class Guard:
    """The entrance of one server. The token is no part of its text, so that no traceback shows it."""

    address: Address
    port: int
    token: str = field(repr=False, default_factory=new_token)

    @property
    def url(self) -> str:
        """The URL of the first page."""
        return f"http://{self.address.name}:{self.port}/{self.token}/"

    def admit(self, method: str, target: str, hosts: Sequence[str]) -> tuple[str, ...] | Response:
        """Return the parts of the path below the token, or the answer of a request that is refused.

        ``hosts`` are the values of the header Host. The last part of a path that ends in a slash is empty.
        """
        if len(hosts) != 1 or not self.address.admits(hosts[0], self.port):
            return refusal(HTTPStatus.FORBIDDEN)
        if method not in METHODS:
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, Allow=", ".join(METHODS))
        root, *parts = target.partition("?")[0].split("/")
        token = parts[0] if parts else ""
        if root or not hmac.compare_digest(token.encode("latin-1", "replace"), self.token.encode()):
            return refusal(HTTPStatus.NOT_FOUND)
        return tuple(_text(part) for part in parts[1:])


def _text(part: str) -> str:
    """Return a part of a path as the name of a file has it: names are bytes, and may be no text."""
    return unquote_to_bytes(part.encode("latin-1", "replace")).decode("utf-8", "surrogateescape")
