"""An API server that plays back what a real one answered (recordings/), on a loopback port."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

RECORDINGS = Path(__file__).parent / "recordings"


def recording(name: str) -> dict[str, Any]:
    """A recording: ``exchanges`` in their order, and the objects of a ``watch``."""
    read: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))
    return read


Line = dict[str, Any] | threading.Event | None
"""A line of a watch. None breaks the connection; an Event is waited for before the next line."""

Watches = Sequence[Sequence[Line]] | Mapping[str, Sequence[Sequence[Line]]]
"""One after the other, or those of each path."""

LONGEST = 30.0
"""Seconds that an Event is waited for."""


class Playback:
    """Answers each request with the next of ``exchanges`` of its path, and each watch with the next of ``watches``.

    ``watches`` of several paths are given by path. ``asked`` is what was asked.
    """

    def __init__(
        self,
        exchanges: list[dict[str, Any]],
        watches: Sequence[Sequence[Line]] | Mapping[str, Sequence[Sequence[Line]]],
    ) -> None:
        self.exchanges = list(exchanges)
        self.watches = {
            path: list(lines) for path, lines in (watches if isinstance(watches, Mapping) else {"": watches}).items()
        }
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        split = urlsplit(handler.path)
        query = dict(parse_qsl(split.query))
        self.asked.append((handler.command.lower(), split.path, query))
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if query.get("watch"):
            left = self.watches.get(split.path, self.watches.get("", []))
            self._play(handler, left.pop(0) if left else [])
            return
        exchange = next(candidate for candidate in self.exchanges if candidate["path"] == split.path)
        assert exchange["method"] == handler.command.lower(), exchange["path"]
        self.exchanges.remove(exchange)
        body = json.dumps(exchange["body"]).encode()
        handler.send_response(exchange["status"])
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _play(self, handler: BaseHTTPRequestHandler, lines: Sequence[Line]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for line in lines:
            if line is None:
                break
            if isinstance(line, threading.Event):
                assert line.wait(LONGEST)
                continue
            data = json.dumps(line).encode() + b"\n"
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        else:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True


@contextlib.contextmanager
def playing(exchanges: list[dict[str, Any]], watches: Watches) -> Iterator[Playback]:
    """Play back on a loopback port."""
    playback = Playback(exchanges, watches)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            playback.answer(self)

        do_POST = do_DELETE = do_PATCH = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    playback.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield playback
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
