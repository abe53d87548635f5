"""Watching a kind of objects, through broken connections and versions that the server has forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.platforms.kubernetes.client.api import Api, ApiError

_GONE = 410
_SILENCE_SECONDS = 60.0
_WATCH_SECONDS = 45
"""Seconds after which the server is asked to end a watch; it is made again then."""

_LATE_SECONDS = 15.0
"""How much later a server may end a watch, before it is broken off here."""

LOST_SECONDS = 180.0
"""Seconds without any answer after which objects are no longer followed."""

_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class Change:
    """An object that has come, changed or gone. ``listed``: seen by listing, so the changes between are not known."""

    kind: Literal["ADDED", "MODIFIED", "DELETED"]
    object: dict[str, Any]
    listed: bool = False


@dataclass(frozen=True)
class Gap:
    """The watch had to begin anew; ``why`` says what was lost."""

    why: str


@dataclass(frozen=True)
class Lost(Gap):
    """The watch has ended by itself, and nothing more is seen of these objects."""


def watch(
    api: Api,
    path: str,
    selector: str,
    stopped: threading.Event,
    *,
    silence: float = _SILENCE_SECONDS,
    seconds: int = _WATCH_SECONDS,
    lost: float = LOST_SECONDS,
    clock: Clock = SYSTEM_CLOCK,
) -> Iterator[Change | Gap]:
    """Yield everything that happens to the objects of ``path`` with these labels, until ``stopped``.

    It begins with the present objects. A connection that ends is made again from the last version seen. When the server
    no longer knows that version (410), all objects are listed again: a Gap is yielded, then missing objects as deleted.

    No connection lasts for ever: the server is asked to end each after ``seconds``, and a connection that is silent for
    ``silence`` seconds, or does not end, is broken off here. Raises ApiError when the server refuses, or has not
    answered for ``lost`` seconds.
    """
    known: dict[str, dict[str, Any]] = {}
    version: str | None = None
    failures = 0
    answered = clock.mono()
    while not stopped.is_set():
        try:
            if version is None:
                listed, version = _listed(api, path, selector)
                answered = clock.mono()
                yield from _differences(known, listed)
                known = listed
            query = _query(selector, version, seconds)
            for event in api.lines(path, query, silence=silence, longest=seconds + _LATE_SECONDS, clock=clock):
                failures = 0
                answered = clock.mono()
                if event.get("type") == "ERROR":
                    raise _error(event)
                subject = event["object"]
                version = str(subject["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    _keep(known, event["type"], subject)
                    yield Change(event["type"], subject)
                if stopped.is_set():
                    return
            answered = clock.mono()
            stopped.wait(_PAUSES[0])  # a server that ends each watch at once must not be asked without end
        except ApiError as error:
            if error.status in (401, 403, 404):
                raise
            if clock.mono() - answered > int(lost * 1e9):
                raise ApiError(error.status, f"deadline 'watch' of {lost:g} s without an answer: {error}") from error
            if error.status == _GONE:
                yield Gap(f"{path}: {error}")
                version = None
                continue
            stopped.wait(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1


def _listed(api: Api, path: str, selector: str) -> tuple[dict[str, dict[str, Any]], str]:
    answer = api.request("get", path, query={"labelSelector": selector} if selector else {})
    items = answer.get("items") or []
    return {str(manifest["metadata"]["uid"]): manifest for manifest in items}, str(
        answer["metadata"]["resourceVersion"]
    )


def _query(selector: str, version: str, seconds: int) -> dict[str, str]:
    query = {
        "watch": "true",
        "resourceVersion": version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(seconds),
    }
    return {**query, "labelSelector": selector} if selector else query


def _differences(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> Iterator[Change]:
    for uid, subject in before.items():
        if uid not in after:
            yield Change("DELETED", subject, listed=True)
    for uid, subject in after.items():
        old = before.get(uid)
        if old is None:
            yield Change("ADDED", subject, listed=True)
        elif old["metadata"].get("resourceVersion") != subject["metadata"].get("resourceVersion"):
            yield Change("MODIFIED", subject, listed=True)


def _keep(known: dict[str, dict[str, Any]], kind: str, subject: dict[str, Any]) -> None:
    uid = str(subject["metadata"]["uid"])
    if kind == "DELETED":
        known.pop(uid, None)
    else:
        known[uid] = subject


def _error(event: dict[str, Any]) -> ApiError:
    status = event.get("object") or {}
    code = status.get("code")
    return ApiError(code if isinstance(code, int) else None, str(status.get("message")))


class Watcher:
    """A watch in a thread of its own, which passes on its changes; :meth:`close` ends it.

    ``failed`` is why it ended by itself; None while it goes on.
    """

    def __init__(self, name: str, changes: Callable[[threading.Event], Iterator[Change | Gap]], tell: Tell) -> None:
        self.failed: str | None = None
        self._stopped = threading.Event()
        self._changes = changes
        self._tell = tell
        self._thread = threading.Thread(target=self._run, name=f"watch-{name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for change in self._changes(self._stopped):
                self._tell(change)
        except ApiError as error:
            self.failed = str(error)
            self._tell(Lost(self.failed))

    def close(self) -> None:
        """End the watch; it may still wait for the end of a connection, and passes on nothing more that matters."""
        self._stopped.set()


Tell = Callable[[Change | Gap], None]
