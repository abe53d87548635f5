"""Whether evidence is in its order, as far as the clocks of its hosts show.

An event that must come first has caused the next one (a barrier, then the injection, then the landing), so an apparent
inversion within the error of well-known clocks is ignored. A larger error would cover a wrong order, so then only a
certain order will do.
"""

from __future__ import annotations

from chaos.history.event import Event

TELLS_NS = 100_000_000
"""An error of two hosts' clocks that covers the time of a message, and no more. Clocks with a larger error prove an
order only beyond their error."""


def out_of_order(first: Event, second: Event) -> str | None:
    """Say why ``first`` may not have come before ``second``, as the end of a sentence; None where nothing says so.

    The end is empty where the clocks show that it did not.
    """
    error = first.uncertainty(second)
    if second.surely_before(first):
        return ""
    if error <= TELLS_NS or first.surely_before(second):
        return None
    return f", for all that the clocks of their hosts tell: they may be wrong by {error / 1e6:.3f} ms"
