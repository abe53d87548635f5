"""Asking a cluster whose API cannot answer just now: its server is restarting, or has too much to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.platforms.kubernetes.client.api import Api, ApiError

T = TypeVar("T")

ANSWER_SECONDS = 20.0
"""How long the API may give no answer: an API server without replicas takes about 10 s to restart."""

_AGAIN_SECONDS = 0.2


def answer_if_any(ask: Callable[[], T]) -> T | None:
    """Return the API's answer; None where it cannot answer just now, which proves nothing. Raises ApiError.

    For callers that poll until a deadline of their own.
    """
    try:
        return ask()
    except ApiError as error:
        if error.passing:
            return None
        raise


def ask_with_retries(ask: Callable[[], T], clock: Clock = SYSTEM_CLOCK) -> T:
    """Return the API's answer, asking again while it cannot answer just now. Only for requests that may be repeated.

    Raises ApiError: a refusal at once, no answer when the deadline 'answer' of ANSWER_SECONDS is over.
    """
    deadline = clock.mono() + int(ANSWER_SECONDS * 1e9)
    while True:
        try:
            return ask()
        except ApiError as error:
            if not error.passing:
                raise
            if clock.mono() >= deadline:
                raise ApiError(error.status, f"deadline 'answer' of {ANSWER_SECONDS:g} s: {error}") from error
        clock.sleep(_AGAIN_SECONDS)


class RetryingApi(Api):
    """A cluster that is asked again (:func:`ask_with_retries`), for callers that put something back
    and have no second look.

    A new object (``post``) is requested once: its name shows whether it was made.
    """

    def __init__(self, api: Api, clock: Clock = SYSTEM_CLOCK) -> None:
        self._api = api
        self._clock = clock
        self.client = api.client

    def request(self, method: str, path: str, *body: Any, **options: Any) -> dict[str, Any]:
        """Return the answer's object. Raises ApiError."""
        if method == "post":
            return self._api.request(method, path, *body, **options)
        return ask_with_retries(lambda: self._api.request(method, path, *body, **options), self._clock)

    def lines(self, path: str, query: Mapping[str, str], **options: Any) -> Iterator[dict[str, Any]]:
        """Yield as :class:`Api` does: the caller of a watch goes on by itself."""
        return self._api.lines(path, query, **options)

    def attach(self, namespace: str, pod: str, container: str, argv: Sequence[str]) -> Any:
        """Attach as :class:`Api` does: a program is not run twice."""
        return self._api.attach(namespace, pod, container, argv)
