"""Whether evidence stands in its order, as far as the clocks of its hosts tell.

What must come first has caused what follows (a barrier, then the injection, then the landing), so within the error of
clocks that are well known nothing is held against it. A larger error would cover an order that is wrong, so then only
an order that is sure will do.
"""

from __future__ import annotations

from chaos.history.event import Event

TELLS_NS = 100_000_000
"""An error of two hosts' clocks that covers what a message takes, and no more. Clocks that are wrong by more tell an
order only where it is beyond their error."""


def out_of_order(first: Event, second: Event) -> str | None:
    """Say why ``first`` may not have come before ``second``, as the end of a sentence; None where nothing tells so.

    The end is empty where the clocks tell that it did not.
    """
    error = first.uncertainty(second)
    if second.surely_before(first):
        return ""
    if error <= TELLS_NS or first.surely_before(second):
        return None
    return f", for all that the clocks of their hosts tell: they may be wrong by {error / 1e6:.3f} ms"
