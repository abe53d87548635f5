"""The page of a run and its trace, made of the run's files when they are asked for.

The report.html in the directory is not served. It may be another user's, or from elsewhere: on this server it could
run its scripts, or lead its reader away, with the token in its address. A page that is made here has nothing of it: it
holds what the run's files say, as text.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import asdict
from pathlib import Path

from chaos.report.page.model import PageData
from chaos.serve.runs import Fingerprint, fingerprint

MOST_KEPT = 4
"""Most runs with cached data: a large run takes some hundred megabytes."""

LINKS = (("../../", "All runs"), ("../../live/", "Live"), ("result.json", "JSON"), ("trace.json", "Trace"))


class RunPages:
    """The pages of runs. One run is judged at a time, and again only after its files have changed."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, tuple[Fingerprint, PageData]] = OrderedDict()
        self._lock = threading.Lock()

    def html(self, path: Path) -> str:
        """Return the page. Raises chaos.checks.judge.RunUnreadable."""
        from chaos.report.page.render import render

        return render(asdict(self._data(path)), LINKS)

    def trace(self, path: Path) -> bytes:
        """Return the trace. Raises chaos.checks.judge.RunUnreadable."""
        from chaos.report.trace import trace_of

        return trace_of(self._data(path)).encode(errors="backslashreplace")

    def _data(self, path: Path) -> PageData:
        with self._lock:
            state = fingerprint(path)
            kept = self._kept.get(path)
            if kept is None or kept[0] != state:
                kept = state, _made(path)
            self._kept[path] = kept
            self._kept.move_to_end(path)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
            return kept[1]


def _made(path: Path) -> PageData:
    from chaos.checks.judge import judge
    from chaos.report.analyze import result_of
    from chaos.report.page.data import page_of

    judgement = judge(path)
    return page_of(path, judgement, result_of(path, judgement))
