"""What a run tells whoever is watching it."""

from __future__ import annotations

from typing import Protocol

from chaos.history.event import Event


class Progress(Protocol):
    """Watches a run. Nothing that it does may change the run: a view that breaks goes quiet."""

    def note(self, text: str) -> None:
        """Something worth a line that is no event of the history: a seed, a baseline taken from the cache."""

    def event(self, event: Event) -> None:
        """An event of the history, in the order in which the driver learns of it; from the harness and from ranks."""
