"""The HTTP server: threads and connections of the standard library, with limits, and without a log of requests.

It is Python's own: no package that the installation needs anyway has a server, and one reader on loopback needs no
other. What the standard library leaves open is closed here: sizes, times, the number of connections, and the text of an
error.
"""

from __future__ import annotations

import io
import socket
import socketserver
import sys
import time
from http import HTTPStatus
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from chaos.serve.address import Address
from chaos.serve.connections import Connections
from chaos.serve.guard import Guard
from chaos.serve.received import MOST_BYTES, Received
from chaos.serve.response import Response, refusal
from chaos.serve.site import Site

_SEND_SECONDS = 60.0


class Server(ThreadingHTTPServer):
    """A server of the pages of one reports directory. Raises OSError where the address cannot be bound."""

    daemon_threads = True

    def __init__(self, reports: Path, kinds: list[str], address: Address, port: int = 0) -> None:
        self.address_family = address.family
        self.connections = Connections()
        super().__init__((address.ip, port, *address.bound[2:]), Connection)
        self.site = Site(Guard(address, self.server_address[1]), reports.resolve(), kinds)

    @property
    def place(self) -> tuple[str, int]:
        """The address and the port that are bound."""
        return str(self.server_address[0]), int(self.server_address[1])

    @property
    def url(self) -> str:
        """The URL of the first page, with the token."""
        return self.site.guard.url

    def server_bind(self) -> None:
        """Bind the address. The standard library's server would look its name up in the network."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a connection in a thread of its own, or close it where there are too many."""
        if self.connections.add(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self.connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell a failure by its name. A connection that was broken off is none."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print(f"chaos: a connection failed: {type(error).__name__}", file=sys.stderr, flush=True)


class Connection(BaseHTTPRequestHandler):
    """One connection of a browser, with its requests one after the other."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        """Prepare to read with limits."""
        super().setup()
        self.rfile.close()
        self._received = Received(self.connection, time.monotonic)
        self.rfile = io.BufferedReader(self._received)

    def handle_one_request(self) -> None:
        """Read one request and answer it; close the connection where none comes."""
        self._received.begin()
        self.requestline = self.request_version = self.command = ""
        try:
            self.raw_requestline = self.rfile.readline(MOST_BYTES)
            if not self.raw_requestline:
                self.close_connection = True
            elif self.parse_request():
                # A body is never read, so it would be taken for the next request.
                self.close_connection |= "Transfer-Encoding" in self.headers or "Content-Length" in self.headers
                hosts = self.headers.get_all("Host", [])
                self._send(self.server.site.answer(self.command, self.path, hosts, self.headers["If-None-Match"]))
        except HTTPException:
            self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
        except TimeoutError:
            self.close_connection = True

    def handle_expect_100(self) -> bool:
        """Go on without asking for a body."""
        return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request with the number only."""
        self.close_connection = True
        self._send(refusal(HTTPStatus(code)))

    def _send(self, response: Response) -> None:
        if response.status >= HTTPStatus.BAD_REQUEST:
            self.close_connection = True  # who is refused holds no connection
        else:
            self.server.connections.prove(self.connection)
        self.request_version = self.protocol_version  # that of a request that could not be read is one without headers
        self.connection.settimeout(_SEND_SECONDS)
        self.send_response(response.status)
        for name, value in response.headers():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def version_string(self) -> str:
        """Return the name of the server, without versions."""
        return "chaos"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the path of each request holds the token."""
