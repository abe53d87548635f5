"""Timings of the stand-in. A profile is a set of limits in seconds; budgets belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from chaos.base.growth import Growing


@dataclass(frozen=True)
class Timings:
    """Limits in seconds.

    A rank is lost when its last heartbeat is ``lost_after`` old, seen at two checks ``check_interval`` apart. With
    ``link_lost_after``, a rank whose connection has broken is lost sooner: the vendor's controller waits for the
    heartbeat alone. ``collection`` bounds the asking of every rank, ``pre_lock`` the wait for one common step,
    ``action`` every other step of the state machine, ``connect`` the search for the controller at the start,
    ``reconnect`` that for one that has gone, ``agent_answer`` each answer of the cluster's agent, ``replacement`` the
    wait for a new process of a lost rank. With ``reports_updates`` a rank also sends a heartbeat at the end of each
    update, so the controller knows the last step of a rank however soon it dies. A rank of PyTorch that is ordered to
    exit ends ``leaving`` later.
    """

    heartbeat: float
    lost_after: float
    link_lost_after: float | None
    check_interval: float
    collection: float
    pre_lock: float
    action: float
    connect: float
    reconnect: float
    agent_answer: float
    replacement: float
    reports_updates: bool
    leaving: float


PROFILES: dict[str, Timings] = {
    # MindIO TFT 7.3 as observed: heartbeat 2 s, lost after 8 s, checked every 2 s with a re-check, collection 5 s,
    # pre-lock 30 s, TTP_NORMAL_ACTION_TIME_LIMIT 180 s, connecting with back-off 1, 2, 4, 8, 10 s (10 tries),
    # MINDIO_WAIT_MINDX_TIME 30 s, waiting for a replacement process 10 min, leaving after 10 s (PyTorch).
    "vendor": Timings(2.0, 8.0, None, 2.0, 5.0, 30.0, 180.0, 75.0, 75.0, 30.0, 600.0, False, 10.0),
    # For everyday runs on two loaded cores: a broken connection is believed at once, silence only after 5 s, since a
    # rank that compiles can hold its interpreter lock for seconds. For the same reason a rank has 5 s to say how it is.
    # A new process imports MindSpore before it can register: 3 s on idle cores. A step takes a tenth of a second, so
    # a rank that has not come to the common step after 10 s never will. Several steps fit between two heartbeats, and
    # their number depends on the load: each update is reported, or chance would decide the last step that is known of
    # a lost rank. Where the steps are counted anew after a repair, nothing is saved by a report from before it.
    "fast": Timings(0.1, 5.0, 0.15, 0.05, 5.0, 10.0, 60.0, 60.0, 1.0, 30.0, 40.0, True, 0.5),
}

_GROWTH: Mapping[str, float] = {
    "heartbeat": 0.005,
    "lost_after": 0.1,
    "collection": 0.1,
    "pre_lock": 0.25,
    "action": 1.0,
    "connect": 2.0,
    "reconnect": 0.05,
    "agent_answer": 0.25,
}
"""By how much the limits of the fast profile grow for a rank: its ranks share a few cores, and one process hears all of
them, so each of many ranks is heard less often. The vendor's limits are those of its SDK for any number of ranks."""

_BACK_OFF = (1, 2, 4, 8)
_LONGEST_WAIT = 10


def timings_of(profile: str, environment: Mapping[str, str], ranks: int = 1) -> Timings:
    """Return the limits of a profile for a job of ``ranks``.

    In the vendor's profile, the limits that its SDK reads from ``environment`` are read here too.

    Like the SDK, a number outside its range counts as none. The fast profile has limits of its own and ignores them.
    Source: MindIO TFT 7.3, TTP_NORMAL_ACTION_TIME_LIMIT (30 to 1800 s), MINDIO_WAIT_MINDX_TIME (1 to 3600 s) and
    TTP_RETRY_TIMES (1 to 300 tries to connect, with 1, 2, 4, 8 and then 10 s between them). Raises KeyError for an
    unknown profile.
    """
    limits = PROFILES[profile]
    if profile != "vendor":
        grown: dict[str, Any] = {name: Growing(getattr(limits, name), each, ranks) for name, each in _GROWTH.items()}
        return replace(limits, **grown)
    tries = _number(environment, "TTP_RETRY_TIMES", 1, 300, 10)
    connect = float(sum(_BACK_OFF[:tries]) + _LONGEST_WAIT * max(0, tries - len(_BACK_OFF)))
    return replace(
        limits,
        action=float(_number(environment, "TTP_NORMAL_ACTION_TIME_LIMIT", 30, 1800, int(limits.action))),
        connect=connect,
        reconnect=connect,
        agent_answer=float(_number(environment, "MINDIO_WAIT_MINDX_TIME", 1, 3600, int(limits.agent_answer))),
    )


def _number(environment: Mapping[str, str], name: str, least: int, most: int, default: int) -> int:
    value = environment.get(name, "")
    if not value.isascii() or not value.isdecimal() or len(value) > len(str(most)):
        return default
    return int(value) if least <= int(value) <= most else default
