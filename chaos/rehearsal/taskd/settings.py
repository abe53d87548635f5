"""The job kind's settings for the agent, in environment variables: in production the cluster's manager gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chaos.base.growth import Growing

STRATEGIES = "REHEARSAL_STRATEGIES"
RESTART_LIMIT = "REHEARSAL_RESTART_LIMIT"
LOGS = "REHEARSAL_LOGS"
RANKS = "REHEARSAL_RANKS"
NODES = "REHEARSAL_NODES"
TIMINGS = "REHEARSAL_TIMINGS"


class SettingsError(ValueError):
    """The agent cannot work with a setting. The text names the variable."""


@dataclass(frozen=True)
class Timings:
    """Limits in seconds.

    ``monitor`` passes between two looks at the processes. ``answer`` is how long the controller may say nothing of a
    lost rank before the agent ends the job: nobody would act any more. It is longer than the time that the controller
    may need before it speaks: it notices, asks every rank, and tries three times to bring all to one step. ``leave`` is
    how long the agent waits for ranks that were ordered to exit when the others have.
    """

    monitor: float
    answer: float
    leave: float


PROFILES = {
    # MindCluster's agent looks every 5 s by default (monitor_interval). A death is noticed by the SDK after about 10 s,
    # ranks are asked for 5 s, and each of three tries to agree on a step takes up to 30 s (fast: 5 s, and 10 s each).
    "vendor": Timings(5.0, 120.0, 10.0),
    "fast": Timings(0.1, 45.0, 20.0),
}


_GROWTH: Mapping[str, float] = {"answer": 1.0, "leave": 0.25}


@dataclass(frozen=True)
class Settings:
    """The agent's permissions, and the directory of the ranks' logs.

    ``switches`` is MS_ENABLE_TFT's content. ``controller`` is where the SDK's controller has to listen, None when no
    mechanism that needs the SDK is on.
    """

    strategies: tuple[str, ...]
    restart_limit: int
    logs: str
    ranks: int
    nodes: int
    switches: frozenset[str]
    controller: tuple[str, int] | None
    timings: Timings

    @property
    def reschedules(self) -> bool:
        """Whether all processes of the job may be started again (RSC)."""
        return "RSC" in self.switches


_NEED_SDK = frozenset({"TTP", "UCE", "HCCE", "ARF", "TSP"})


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError."""
    switches = frozenset(
        part.partition(":")[0].strip()
        for part in environment.get("MS_ENABLE_TFT", "").strip("{} ").split(",")
        if part.partition(":")[2].strip() == "1"
    )
    timings = environment.get(TIMINGS, "fast")
    if timings not in PROFILES:
        raise SettingsError(f"{TIMINGS} is {timings!r}, not one of {', '.join(PROFILES)}")
    strategies = tuple(filter(None, environment.get(STRATEGIES, "").split(",")))
    if "elastic-training" in strategies:
        raise SettingsError("the strategy elastic-training is for PyTorch only and not supported by MindSpore")
    return Settings(
        strategies=strategies,
        restart_limit=_number(environment, RESTART_LIMIT),
        logs=environment.get(LOGS, ""),
        ranks=_number(environment, RANKS),
        nodes=_number(environment, NODES),
        switches=switches,
        controller=_controller(environment) if switches & _NEED_SDK else None,
        timings=_timings(timings, _number(environment, RANKS)),
    )


def _timings(profile: str, ranks: int) -> Timings:
    """Return the limits for so many ranks: the agent gives the controller more time, as its own limits grow too."""
    limits = PROFILES[profile]
    if profile == "vendor":
        return limits
    return replace(limits, **{name: Growing(getattr(limits, name), each, ranks) for name, each in _GROWTH.items()})


def _controller(environment: Mapping[str, str]) -> tuple[str, int]:
    address = environment.get("MS_TFT_IP", "")
    if not address:
        raise SettingsError("MS_TFT_IP is not set: the controller does not know where to listen")
    return address, _number(environment, "MS_TFT_PORT")


def _number(environment: Mapping[str, str], name: str) -> int:
    value = environment.get(name, "")
    if not value.isascii() or not value.isdecimal():
        raise SettingsError(f"{name} is {value!r}, not a number")
    return int(value)
