"""The ends of the phases of a pause: by the ranks' records, and the order to go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from chaos.evidence.facts import TRAIN, by_rank
from chaos.evidence.timestamp import Timestamp, latest
from chaos.faults.pause.proof import Halt, halts
from chaos.mechanisms.markers import Launch, Marker, MarkerError, first_of, last_of_ranks, marked


def _stops(launch: Launch, after: int) -> list[Halt]:
    """Return the first stop of each rank since the pause was requested."""
    by_rank = [
        [halt for halt in halts(launch.history, rank) if halt.noticed.mono >= after]
        for rank in range(launch.plan.layout.ranks)
    ]
    if not all(by_rank):
        raise MarkerError(f"a pause is recorded for {sum(map(bool, by_rank))} of {launch.plan.layout.ranks} ranks")
    return [stops[0] for stops in by_rank]


def _paused(launch: Launch, after: int) -> Timestamp:
    return latest(Timestamp.of(halt.noticed) for halt in _stops(launch, after))


def _ordered_to_go_on(launch: Launch, after: int) -> Timestamp:
    orders = launch.history.select("fault.ending")
    return first_of(orders, _paused(launch, after).mono, "the order to go on")


def _first_after_pause(launch: Launch, after: int) -> Timestamp:
    order = _ordered_to_go_on(launch, after).mono
    ended = by_rank(launch.history, "step.end", TRAIN)
    ends = [event for events in ended.values() for event in [later for later in events if later.mono >= order][:1]]
    return last_of_ranks(launch, ends, "the end of a step after the pause", launch.plan.layout.ranks)


_MARKERS: Mapping[str, Marker] = MappingProxyType(
    {"stop": _paused, "pause": _ordered_to_go_on, "first step": _first_after_pause}
)


def phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase, or why it is not known."""
    return marked(_MARKERS, launch, after)
