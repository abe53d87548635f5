"""`chaos serve`: prints its URL, serves until Ctrl-C, and refuses what it cannot serve in a sentence."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chaos.serve.server import Server
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]

PATIENCE = 60.0


@pytest.fixture
def interrupted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes before the first request."""

    def interrupted(self: Server) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", interrupted)


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_at_the_url_that_it_prints_until_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "chaos", "serve", "--reports", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            assert b"0 runs" in page.read()
        process.send_signal(number)
        assert (process.wait(), process.stdout.read()) == (130, "")
        assert process.stderr.read() == "chaos: interrupted\n"


def test_without_a_host_the_url_is_on_loopback_and_nothing_is_warned_of(
    chaos: Call, tmp_path: Path, interrupted_at_once: None
) -> None:
    ended = chaos("serve", "--reports", str(tmp_path))
    assert urlsplit(ended.out.strip()).hostname == "127.0.0.1"
    assert (ended.code, ended.err) == (130, "chaos: interrupted\n")


def test_another_address_is_served_by_name_and_with_a_warning(
    chaos: Call, tmp_path: Path, interrupted_at_once: None
) -> None:
    ended = chaos("serve", "--reports", str(tmp_path), "--host", "0.0.0.0")
    assert "warning: 0.0.0.0 is no loopback address: whoever learns the URL can read all runs" in ended.err


def test_the_browser_learns_the_token_from_a_file_that_only_this_user_can_read(
    chaos: Call, tmp_path: Path, interrupted_at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[tuple[str, str, int]] = []

    def open_file(url: str) -> bool:
        path = Path(urlsplit(url).path)
        opened.append((url, path.read_text(), path.parent.stat().st_mode & 0o777))
        return len(opened) == 1

    monkeypatch.setattr("webbrowser.open", open_file)
    ended = chaos("serve", "--reports", str(tmp_path), "--open")
    ((url, text, mode),) = opened
    assert url.startswith("file:") and mode == 0o700
    served = ended.out.strip()
    assert f"url={served}" in text and urlsplit(served).path.strip("/") not in url
    assert not Path(urlsplit(url).path).exists(), "the file is removed in the end"
    assert "no browser was found here; open the URL by hand" in chaos("serve", "--reports", str(tmp_path), "--open").err


def test_what_cannot_be_served_is_bad_usage(chaos: Call, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for words, told in [
            (["--reports", str(tmp_path / "none")], "there is no such directory"),
            (["--reports", str(tmp_path), "--host", "no such host"], "'no such host' has no address"),
            (["--reports", str(tmp_path), "--host", "192.0.2.1"], "--host 192.0.2.1: Cannot assign requested address"),
            (["--reports", str(tmp_path), "--port", port], f"--port {port}: Address already in use"),
        ]:
            ended = chaos("serve", *words)
            assert ended.code == 64 and told in ended.err, ended.err
