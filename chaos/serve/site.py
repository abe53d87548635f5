"""The pages of the server by their paths, and the answer to each request."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from chaos.base.plain_files import UnreadableFile, read_plain
from chaos.checks.judge import RunUnreadable
from chaos.evidence.text import readable
from chaos.report.index.render import index_policy
from chaos.report.page.render import DOCUMENT as RUN_PAGE
from chaos.report.result_file import FILE as RESULT
from chaos.serve import trends
from chaos.serve.guard import Guard
from chaos.serve.index import IndexPage
from chaos.serve.live import LiveRuns
from chaos.serve.page.render import DOCUMENT as LIVE_PAGE
from chaos.serve.page.render import live_page
from chaos.serve.response import Response, document, page, redirect, refusal
from chaos.serve.run_pages import RunPages
from chaos.serve.runs import RunDirectories, in_progress
from chaos.trends.page.write import DOCUMENT as TRENDS_PAGE
from chaos.trends.store import StoreUnusable


class Site:
    """Answers every path below the token: the index, times over nights, runs with their files, and runs in progress."""

    def __init__(self, guard: Guard, reports: Path, kinds: list[str]) -> None:
        self.guard = guard
        self._directories = RunDirectories(reports)
        self._index = IndexPage(self._directories, kinds)
        self._runs = RunPages()
        self._trends = trends.TrendsPage(self._directories)
        self._live = LiveRuns(self._directories)

    def answer(self, method: str, target: str, hosts: Sequence[str], known: str | None = None) -> Response:
        """Return the answer to a request.

        ``hosts`` are the values of its header Host, and ``known`` is what it says to have already. Never raises: a page
        that cannot be made is reported in the terminal, without its path, which holds the token.
        """
        parts = self.guard.admit(method, target, hosts)
        if isinstance(parts, Response):
            return parts
        try:
            return self._page(parts).unless_known(known)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            print(f"chaos: a page could not be made: {readable(reason)}", file=sys.stderr, flush=True)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, f"The page could not be made: {reason}")

    def _page(self, parts: tuple[str, ...]) -> Response:
        match parts:
            case ("",):
                return page(self._index.html(self._live.in_progress()), index_policy())
            case (trends.PATH,):
                return self._of_trends()
            case ("live", ""):
                return page(live_page(), LIVE_PAGE.policy)
            case ("live", "state.json"):
                return document(self._live.document())
            case () | ("live",) | ("run", _):
                # The links of a page are relative to its path, which ends in a slash.
                if parts[:1] != ("run",) or self._directories.find(parts[-1]) is not None:
                    return redirect(f"{quote(os.fsencode(parts[-1]))}/" if parts else f"{self.guard.token}/")
            case ("run", name, file) if (path := self._directories.find(name)) is not None:
                return self._of_run(path, file)
        return refusal(HTTPStatus.NOT_FOUND)

    def _of_trends(self) -> Response:
        try:
            return page(self._trends.html(), TRENDS_PAGE.policy)
        except StoreUnusable as error:
            return refusal(HTTPStatus.NOT_FOUND, readable(str(error)))

    def _of_run(self, path: Path, file: str) -> Response:
        try:
            match file:
                case "" if in_progress(path):
                    return redirect("../../live/")
                case "":
                    return page(self._runs.html(path), RUN_PAGE.policy)
                case "trace.json":
                    return document(self._runs.trace(path), f"{_word(path.name)}.{file}")
                case "result.json":
                    return document(read_plain(path / RESULT), f"{_word(path.name)}.{file}")
        except (RunUnreadable, UnreadableFile) as error:
            return refusal(HTTPStatus.NOT_FOUND, readable(str(error)))
        return refusal(HTTPStatus.NOT_FOUND)


def _word(name: str) -> str:
    """Return a name without characters that mean something in a header."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
