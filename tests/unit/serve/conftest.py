"""A reports directory with a run that passed, and the site that serves it, without a socket."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.report.analyze import analyze
from chaos.serve.address import address_of
from chaos.serve.guard import Guard
from chaos.serve.response import Response
from chaos.serve.server import Server
from chaos.serve.site import Site
from tests.kit.runs.good_run import good_run

RUN = "kill-rank-20261127-085928-e324"
PORT = 8765
HOST = f"127.0.0.1:{PORT}"

PATIENCE = 60.0

Get = Callable[..., Response]


@pytest.fixture(scope="session")
def judged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = good_run().write(tmp_path_factory.mktemp("judged") / "run")
    analyze(run)
    (run / "run.json").write_text("{}")
    return run


@pytest.fixture
def reports(tmp_path: Path, judged_run: Path) -> Path:
    """The directory with one run, and with ``latest``."""
    shutil.copytree(judged_run, tmp_path / "reports" / RUN)
    (tmp_path / "reports" / "latest").symlink_to(RUN)
    return tmp_path / "reports"


@pytest.fixture
def site(reports: Path) -> Site:
    return Site(Guard(address_of(None), PORT), reports, ["hang", "kill"])


@pytest.fixture
def get(site: Site) -> Get:
    """Ask for a path below the token."""

    def get(path: str, known: str | None = None) -> Response:
        return site.answer("GET", f"/{site.guard.token}/{path}", [HOST], known)

    return get


@pytest.fixture
def serving(reports: Path) -> Iterator[Server]:
    """A server on a real loopback socket."""
    with served(reports) as running:
        yield running


@contextmanager
def served(reports: Path) -> Iterator[Server]:
    """Serve a directory from a thread."""
    with Server(reports, ["kill"], address_of(None)) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()
