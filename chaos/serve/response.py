"""An answer to a request, and the headers that every answer has."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

HTML = "text/html; charset=utf-8"
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

NOTHING_ALLOWED = "default-src 'none'"

_ALWAYS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}
"""The path of each page holds the token: no cache keeps it, no link reveals it, and no other page embeds it."""


@dataclass(frozen=True)
class Response:
    """An answer. ``policy`` is the content policy of a page; without one nothing is allowed in it."""

    status: HTTPStatus
    body: bytes = b""
    kind: str = TEXT
    policy: str = NOTHING_ALLOWED
    more: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = None
    """The entity tag by which a browser asks for the answer again; None where it never does."""

    def headers(self) -> Iterator[tuple[str, str]]:
        """Yield the headers of the answer."""
        yield from _ALWAYS.items()
        yield "Content-Security-Policy", f"{self.policy}; frame-ancestors 'none'"
        if self.tag is not None:
            yield "ETag", self.tag
        if self.status is not HTTPStatus.NOT_MODIFIED:
            yield "Content-Type", self.kind
            yield "Content-Length", str(len(self.body))
        yield from self.more.items()

    def unless_known(self, tags: str | None) -> Response:
        """Return an empty answer where the browser has the same already: ``tags`` lists its copies."""
        if self.tag is None or self.tag not in [tag.strip() for tag in (tags or "").split(",")]:
            return self
        return Response(HTTPStatus.NOT_MODIFIED, policy=self.policy, tag=self.tag)


def page(text: str, policy: str) -> Response:
    """Return the answer with a page. Half a character pair, which a job's text may hold, becomes a question mark."""
    return Response(HTTPStatus.OK, text.encode(errors="replace"), HTML, policy)


def document(content: bytes, name: str | None = None) -> Response:
    """Return the answer with a JSON document; a browser saves it under ``name``."""
    more = {} if name is None else {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(HTTPStatus.OK, content, JSON, more=more, tag=f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def refusal(status: HTTPStatus, sentence: str | None = None, **more: str) -> Response:
    """Return the answer that there is no page. Without a sentence it has only its number."""
    return Response(status, f"{sentence or status.phrase}\n".encode(errors="replace"), more=more)


def redirect(place: str) -> Response:
    """Return the answer that the page is elsewhere, relative to the path that was asked for."""
    return Response(HTTPStatus.SEE_OTHER, more={"Location": place})
