"""Who is let in: with the token, by a name of this server, to read. Everybody else learns nothing."""

from __future__ import annotations

import pytest

from chaos.serve.address import AddressUnknown, address_of
from chaos.serve.guard import Guard, new_token
from chaos.serve.response import Response
from tests.unit.serve.conftest import HOST, PORT

TOKEN = "t0ken"


@pytest.fixture
def guard() -> Guard:
    return Guard(address_of(None), PORT, TOKEN)


def status(answer: tuple[str, ...] | Response) -> int:
    assert isinstance(answer, Response), answer
    return int(answer.status)


def test_a_token_has_256_random_bits_and_is_part_of_the_url() -> None:
    first, second = Guard(address_of(None), PORT), Guard(address_of(None), PORT)
    assert first.token != second.token
    assert len(new_token()) == 43, "32 bytes as base64"
    assert first.url == f"http://127.0.0.1:{PORT}/{first.token}/"


def test_the_token_is_not_in_what_a_traceback_shows(guard: Guard) -> None:
    assert TOKEN not in repr(guard)


def test_a_path_below_the_token_is_told_by_its_parts(guard: Guard) -> None:
    assert guard.admit("GET", f"/{TOKEN}/", [HOST]) == ("",)
    assert guard.admit("HEAD", f"/{TOKEN}/run/a%20b/?x=1", [HOST]) == ("run", "a b", "")
    assert guard.admit("GET", f"/{TOKEN}", [HOST]) == ()


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "",
        "*",
        "/live/",
        "/t0ke/",
        "/t0ken2/",
        "/T0KEN/",
        "//t0ken/",
        "/%740ken/",
        "t0ken/",
        "/\xe9/",
        f"http://{HOST}/{TOKEN}/",
    ],
)
def test_without_the_token_there_is_no_page_and_no_information(guard: Guard, target: str) -> None:
    answer = guard.admit("GET", target, [HOST])
    assert status(answer) == 404
    assert isinstance(answer, Response) and answer.body == b"Not Found\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", ""])
def test_only_reading_is_allowed(guard: Guard, method: str) -> None:
    answer = guard.admit(method, f"/{TOKEN}/", [HOST])
    assert status(answer) == 405
    assert isinstance(answer, Response) and answer.more == {"Allow": "GET, HEAD"}


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f" {HOST} "])
def test_the_names_of_loopback_are_admitted(guard: Guard, host: str) -> None:
    assert guard.admit("GET", f"/{TOKEN}/", [host]) == ("",)


@pytest.mark.parametrize(
    "hosts",
    [
        [],
        [HOST, HOST],
        ["127.0.0.1"],
        ["127.0.0.1:80"],
        ["127.0.0.1:"],
        [f"rebound.example:{PORT}"],
        [f"[::1]:{PORT}"],
        [f"127.0.0.1.rebound.example:{PORT}"],
        [f"10.0.0.7:{PORT}"],
        [f"user@{HOST}"],
        [f"localhost.:{PORT}"],
        [""],
    ],
)
def test_another_name_is_refused_even_with_the_token(guard: Guard, hosts: list[str]) -> None:
    assert status(guard.admit("GET", f"/{TOKEN}/", hosts)) == 403


def test_the_address_is_ipv4_loopback_unless_another_is_named() -> None:
    assert (address_of(None).ip, address_of(None).loopback) == ("127.0.0.1", True)
    sixth = address_of("::1")
    assert (sixth.ip, sixth.loopback, sixth.name) == ("::1", True, "[::1]")
    assert sixth.admits("[::1]:80", 80) and sixth.admits("[::1]", 80) and not sixth.admits("127.0.0.1:80", 80)


def test_on_every_address_a_literal_one_is_admitted_and_no_strange_name() -> None:
    every = address_of("0.0.0.0")
    assert not every.loopback
    assert every.admits("10.0.0.7:80", 80) and every.admits("[fe80::1]:80", 80)
    assert not every.admits("rebound.example:80", 80)


def test_a_named_address_is_admitted_by_its_name_and_its_number() -> None:
    named = address_of("192.0.2.1")
    assert (named.loopback, named.every) == (False, False)
    assert named.admits("192.0.2.1:80", 80) and not named.admits("localhost:80", 80)


def test_a_name_without_an_address_is_told() -> None:
    with pytest.raises(AddressUnknown, match="has no address"):
        address_of("no host has such a name")
