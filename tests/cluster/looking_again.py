"""A stand-in of a controller that looks at its cluster again and again, as the controller does by a watch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol, TypeVar

from chaos.platforms.kubernetes.client.api import ApiError


class Looks(Protocol):
    """A stand-in that acts on what a cluster holds, once for each call."""

    def look(self) -> None:
        """Bring the cluster to what its objects say."""


Standin = TypeVar("Standin", bound=Looks)


@contextlib.contextmanager
def looking_again(standin: Standin, name: str, seconds: float = 0.3) -> Iterator[Standin]:
    """Let the stand-in look every so many seconds, in a thread of that name."""
    stopped = threading.Event()

    def look() -> None:
        while not stopped.wait(seconds):
            with contextlib.suppress(ApiError):
                standin.look()

    thread = threading.Thread(target=look, name=name, daemon=True)
    thread.start()
    try:
        yield standin
    finally:
        stopped.set()
        thread.join(30)
