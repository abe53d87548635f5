"""An API server that plays back what a real one answered (recordings/), on a loopback port."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

RECORDINGS = Path(__file__).parent / "recordings"


def recording(name: str) -> dict[str, Any]:
    """A recording: ``exchanges`` in their order, and the objects of a ``watch``."""
    read: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))
    return read


class Playback:
    """Answers each request with the next of ``exchanges``, and each watch with the next of ``watches``.

    A watch is a list of lines, of which None breaks the connection. ``asked`` is what was asked.
    """

    def __init__(self, exchanges: list[dict[str, Any]], watches: list[list[dict[str, Any] | None]]) -> None:
        self.exchanges = list(exchanges)
        self.watches = list(watches)
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        split = urlsplit(handler.path)
        query = dict(parse_qsl(split.query))
        self.asked.append((handler.command.lower(), split.path, query))
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if query.get("watch"):
            self._play(handler, self.watches.pop(0) if self.watches else [])
            return
        exchange = self.exchanges.pop(0)
        assert (exchange["method"], exchange["path"]) == (handler.command.lower(), split.path), exchange["path"]
        body = json.dumps(exchange["body"]).encode()
        handler.send_response(exchange["status"])
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _play(self, handler: BaseHTTPRequestHandler, lines: list[dict[str, Any] | None]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for line in lines:
            if line is None:
                break
            data = json.dumps(line).encode() + b"\n"
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        else:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True


@contextlib.contextmanager
def playing(exchanges: list[dict[str, Any]], watches: list[list[dict[str, Any] | None]]) -> Iterator[Playback]:
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
        thread.join(10)
