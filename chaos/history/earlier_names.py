"""The names that earlier releases gave to events. A run that they recorded is judged by the names of today."""

from __future__ import annotations

from collections.abc import Mapping

EARLIER_NAMES: Mapping[str, str] = {
    "desk.found": "endpoint.found",
    "job.waited": "job.starved",
    "stranger": "caller.refused",
}
"""The name of today for each earlier one. :mod:`chaos.history.reader` puts it in the place of the earlier one."""
