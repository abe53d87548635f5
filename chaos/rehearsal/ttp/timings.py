"""Timings of the stand-in. A profile is a set of limits in seconds; budgets belong to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Limits in seconds.

    A rank is lost when its last heartbeat is ``lost_after`` old, seen at two checks ``check_interval`` apart. With
    ``link_lost_after``, a rank whose connection has broken is lost sooner: the vendor's controller waits for the
    heartbeat alone. ``collection`` bounds the asking of every rank, ``pre_lock`` the wait for one common step,
    ``action`` every other step of the state machine, ``reconnect`` the search for a controller that has gone,
    ``agent_answer`` each answer of the cluster's agent, ``replacement`` the wait for a new process of a lost rank.
    """

    heartbeat: float
    lost_after: float
    link_lost_after: float | None
    check_interval: float
    collection: float
    pre_lock: float
    action: float
    reconnect: float
    agent_answer: float
    replacement: float


PROFILES: dict[str, Timings] = {
    # MindIO TFT 7.3 as observed: heartbeat 2 s, lost after 8 s, checked every 2 s with a re-check, collection 5 s,
    # pre-lock 30 s, TTP_NORMAL_ACTION_TIME_LIMIT 180 s, connecting with back-off 1, 2, 4, 8, 10 s (10 tries),
    # MINDIO_WAIT_MINDX_TIME 30 s, waiting for a replacement process 10 min.
    "vendor": Timings(2.0, 8.0, None, 2.0, 5.0, 30.0, 180.0, 75.0, 30.0, 600.0),
    # For everyday runs on two loaded cores: a broken connection is believed at once, silence only after 5 s, since a
    # rank that compiles can hold its interpreter lock for seconds. For the same reason a rank has 5 s to say how it is.
    # A new process imports MindSpore before it can register: 3 s on idle cores. A step takes a tenth of a second, so
    # whoever has not come to the common step after 10 s never will.
    "fast": Timings(0.1, 5.0, 0.15, 0.05, 5.0, 10.0, 60.0, 1.0, 30.0, 40.0),
}
