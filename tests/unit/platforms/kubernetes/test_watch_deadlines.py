"""A watch that hangs is broken off, made again, and given up in the end: nothing waits for it for ever."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from chaos.platforms.kubernetes.client import api as api_module
from chaos.platforms.kubernetes.client import watching
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.client.watching import Change, Gap, Lost, Watcher, watch

pytestmark = pytest.mark.processes

kubernetes = pytest.importorskip("kubernetes", reason="the kubernetes client is not installed")

PODS = "/api/v1/namespaces/train/pods"
POD = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}


@contextlib.contextmanager
def serving(watched: Callable[[BaseHTTPRequestHandler, int], None]) -> Iterator[Api]:
    """A server that lists one pod, and answers each watch, by its number, as it is told to."""
    from kubernetes.client import ApiClient, Configuration

    count = [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self.close_connection = True
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            if not dict(parse_qsl(urlsplit(self.path).query)).get("watch"):
                body = json.dumps({"metadata": {"resourceVersion": "7"}, "items": [POD]}).encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            count[0] += 1
            with contextlib.suppress(OSError):
                watched(self, count[0])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_port}"
    try:
        yield Api(ApiClient(configuration))
    finally:
        server.shutdown()
        server.server_close()


def piece(handler: BaseHTTPRequestHandler, data: bytes) -> None:
    handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    handler.wfile.flush()


def modified(version: int) -> bytes:
    metadata = {"name": "a", "uid": "u", "resourceVersion": str(version)}
    return json.dumps({"type": "MODIFIED", "object": {"metadata": metadata}}).encode() + b"\n"


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_watch_that_never_says_anything_is_broken_off_and_made_again(released: threading.Event) -> None:
    def watched(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number == 1:
            released.wait(60)
        else:
            piece(handler, modified(8))
            released.wait(60)

    stopped = threading.Event()
    with serving(watched) as api:
        changes = watch(api, PODS, "", stopped, silence=0.3, lost=60)
        assert [type(next(changes)), next(changes)] == [Change, Change("MODIFIED", json.loads(modified(8))["object"])]
        stopped.set()


def test_a_watch_that_trickles_without_end_is_broken_off(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each piece comes in time, so only a deadline of the whole ends it."""
    monkeypatch.setattr(watching, "_LATE_SECONDS", 0.3)

    def watched(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number > 1:
            piece(handler, modified(8))
        while not released.wait(0.05):
            piece(handler, b"\n")

    stopped = threading.Event()
    with serving(watched) as api:
        changes = watch(api, PODS, "", stopped, silence=30, seconds=0, lost=60)
        next(changes)
        assert next(changes).object["metadata"]["resourceVersion"] == "8"  # type: ignore[union-attr]
        stopped.set()


def test_a_server_that_answers_no_more_is_given_up_and_the_watcher_says_so(released: threading.Event) -> None:
    def watched(handler: BaseHTTPRequestHandler, number: int) -> None:
        released.wait(60)

    entries: list[Change | Gap] = []
    ended = threading.Event()

    def tell(change: Change | Gap) -> None:
        entries.append(change)
        if isinstance(change, Lost):
            ended.set()

    with serving(watched) as api:
        watcher = Watcher("pods", lambda stopped: watch(api, PODS, "", stopped, silence=0.1, lost=0.5), tell)
        assert ended.wait(60), entries
    assert watcher.failed is not None and "deadline 'watch' of 0.5 s without an answer" in watcher.failed
    assert [type(change) for change in entries] == [Change, Lost]


def test_an_exec_that_is_never_opened_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from kubernetes.client import ApiClient, Configuration

    monkeypatch.setattr(api_module, "CALL_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ApiError, match=r"deadline 'exec' of 0\.3 s") as refused:
            Api(ApiClient(configuration)).attach("train", "a", "ascend", ["true"])
        assert refused.value.status is None
