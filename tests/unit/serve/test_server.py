"""The server on a real loopback socket: what it answers, what it cuts off, and what it never says."""

from __future__ import annotations

import http.client
import socket
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chaos.serve import received
from chaos.serve.address import address_of
from chaos.serve.connections import Connections
from chaos.serve.received import MOST_BYTES, Received, TooMuchReceived
from chaos.serve.server import Server
from tests.unit.serve.conftest import PATIENCE


def connect(serving: Server) -> HTTPConnection:
    return HTTPConnection(*serving.place, timeout=PATIENCE)


def spoken(serving: Server, text: bytes) -> bytes:
    """Send bytes, and return all that is answered until the server closes the connection."""
    with socket.create_connection(serving.place, timeout=PATIENCE) as connection:
        connection.sendall(text)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionResetError:
            pass  # the server closed with bytes unread
        return answer


def test_it_listens_on_loopback_only(serving: Server) -> None:
    assert serving.server_address[0] == "127.0.0.1"
    assert urlsplit(serving.url).hostname == "127.0.0.1"


def test_pages_come_one_after_the_other_on_one_connection(serving: Server) -> None:
    path = urlsplit(serving.url).path
    with closing(connect(serving)) as connection:
        for _ in range(2):
            connection.request("GET", path)
            with connection.getresponse() as answer:
                assert (answer.status, answer.headers["Server"]) == (200, "chaos")
                assert b"kill-rank" in answer.read()
        connection.request("HEAD", path)
        with connection.getresponse() as answer:
            assert (answer.status, answer.read()) == (200, b"")
            assert int(answer.headers["Content-Length"]) > 1000


def test_who_has_no_token_gets_a_number_and_is_cut_off(serving: Server) -> None:
    with closing(connect(serving)) as connection:
        connection.request("GET", "/")
        with connection.getresponse() as answer:
            assert (answer.status, answer.read()) == (404, b"Not Found\n")
            assert answer.headers["Connection"] == "close"


def test_a_rebound_name_is_refused(serving: Server) -> None:
    with closing(connect(serving)) as connection:
        connection.request("GET", urlsplit(serving.url).path, headers={"Host": "rebound.example"})
        assert connection.getresponse().status == 403


@pytest.mark.parametrize("method", ["POST", "OPTIONS", "BREW"])
def test_nothing_can_be_written(serving: Server, method: str) -> None:
    with closing(connect(serving)) as connection:
        connection.request(method, urlsplit(serving.url).path, body=b"x=1")
        assert connection.getresponse().status == 405


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        (b"GET /" + b"a" * MOST_BYTES + b" HTTP/1.1\r\n\r\n", b" 4"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * MOST_BYTES + b"\r\n\r\n", b" 431 "),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n", b" 431 "),
        (b"nonsense\r\n\r\n", b" 400 "),
        (b"GET / HTTP/9.9\r\n\r\n", b" 505 "),
    ],
)
def test_what_is_no_request_or_too_large_gets_a_number_and_no_page(
    serving: Server, request_text: bytes, status: bytes
) -> None:
    answer = spoken(serving, request_text)
    assert status in answer.partition(b"\r\n")[0]
    assert b"<" not in answer and b"kill-rank" not in answer


def test_a_body_is_never_taken_for_a_request(serving: Server) -> None:
    head = f"GET {urlsplit(serving.url).path} HTTP/1.1\r\nHost: {urlsplit(serving.url).netloc}\r\n"
    answer = spoken(serving, f"{head}Content-Length: 5\r\n\r\n{head}\r\n".encode())
    assert answer.count(b"HTTP/1.1 ") == 1


def test_who_has_no_token_keeps_nobody_out(serving: Server) -> None:
    serving.connections = Connections(most=2)
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(serving.place, timeout=PATIENCE)) for _ in range(2)]
        reader = stack.enter_context(closing(connect(serving)))
        reader.request("GET", urlsplit(serving.url).path)
        assert reader.getresponse().read()
        assert silent[0].recv(1) == b"", "the oldest is cut off"
        again = stack.enter_context(closing(connect(serving)))
        again.request("GET", urlsplit(serving.url).path)
        assert again.getresponse().read()
        assert spoken(serving, b"GET / HTTP/1.1\r\n\r\n") == b"", "two have shown the token, and the third is closed"


def test_a_connection_that_ends_makes_room() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connections = Connections(most=1)
        assert connections.add(ours)
        connections.prove(ours)
        assert not connections.add(theirs)
        connections.remove(ours)
        assert connections.add(theirs)


def test_a_request_that_trickles_in_is_given_up() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        now = 0.0
        stream = Received(ours, lambda: now)
        theirs.sendall(b"GET")
        buffer = bytearray(10)
        assert stream.readinto(buffer) == 3
        now = received.SECONDS + 1
        theirs.sendall(b" ")
        with pytest.raises(TimeoutError):
            stream.readinto(buffer)
        stream.begin()
        assert stream.readinto(buffer) == 1


def test_a_request_has_an_allowance_of_bytes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = Received(ours, lambda: 0.0)
        theirs.sendall(b"a" * (MOST_BYTES + 1))
        buffer = bytearray(MOST_BYTES + 1)
        taken = 0
        with pytest.raises(TooMuchReceived):
            while True:
                taken += stream.readinto(buffer)
        assert taken == MOST_BYTES
        assert issubclass(TooMuchReceived, http.client.HTTPException)


def test_no_request_is_logged(serving: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with closing(connect(serving)) as connection:
        connection.request("GET", urlsplit(serving.url).path)
        connection.getresponse().read()
    spoken(serving, b"nonsense\r\n\r\n")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_an_ipv6_address_is_served_where_it_is_named(reports: Path) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").read_text().strip():
        pytest.skip("this machine has no IPv6")
    with Server(reports, [], address_of("::1")) as running:
        assert running.url.startswith(f"http://[::1]:{running.server_address[1]}/")
