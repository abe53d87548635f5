"""The names that earlier releases gave to events. A run recorded under them is judged by the present names."""

from __future__ import annotations

from collections.abc import Mapping

EARLIER_NAMES: Mapping[str, str] = {
    "desk.found": "endpoint.found",
    "job.waited": "job.starved",
    "stranger": "caller.refused",
}
"""The present name for each earlier name. :mod:`chaos.history.reader` replaces the earlier names."""
