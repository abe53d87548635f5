"""Which mechanism must act, and the vendor's table of what each one needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from chaos.scenario.terms import Mechanism

DOCUMENT = "MindSpore Transformers, Training High Availability"
"""The vendor's document that the rules of this package come from."""

IMPLIES: Mapping[Mechanism, Mechanism] = MappingProxyType({"UCE": "TTP", "ARF": "TTP"})
"""Mechanisms that switch another one on: the end-of-life checkpoint is the last safeguard of UCE and ARF."""

FOR_LOST_RANKS: tuple[Mechanism, ...] = ("ARF", "RSC", "TTP")
"""Mechanisms that act when a process is lost, the one that decides the outcome first.

ARF is tried before TTP. RSC comes behind TTP but stands before it: where it is on, it starts the job again after the
checkpoint, so the outcome is no longer TTP's alone.
"""

PAUSING: frozenset[Mechanism] = frozenset({"TSP"})
"""Mechanisms that hold the training back and let it go on, without losing anything."""

ONLINE: tuple[Mechanism, ...] = ("UCE", "HCCE")
"""Mechanisms that repair a rank while its process lives on, and save nothing."""

SAVING: frozenset[Mechanism] = frozenset({"TTP"})
"""Mechanisms that leave an end-of-life checkpoint."""

SUPPORTED: frozenset[Mechanism] = SAVING | frozenset(ONLINE) | PAUSING | {"ARF", "RSC", "TRE"}
"""Mechanisms whose outcome this version can plan."""

IN_STEP: frozenset[Mechanism] = frozenset({"TTP", "UCE", "HCCE", "ARF"})
"""Mechanisms with which the optimizer's wrapper sums a flag over all ranks before each update.

No rank finishes a step then before every rank has reduced its gradients. Without them the ranks of a replica group wait
for each other only. Source: MindSpore 2.10, ``TrainFaultTolerance.get_optimizer_wrapper``.
"""

MEMORY, COMMUNICATION = "memory error", "communication error"
"""Effects of faults that a device reports: the rank's process lives, and MindSpore classifies the error by its text."""

UNKNOWN_ERROR = "unknown error"
"""Effect of an exception that MindSpore's wrapper round the training has no repair for. It reports RS_UNKNOWN to the
SDK (``_handle_exception_info`` in train/model.py of MindSpore 2.10), so the rank counts as lost."""

TIMED = "timed memory error"
"""Effect of a fault kind whose memory error tells when it came; the plan makes MEMORY or one of the next two of it."""

LOW_LEVEL, IN_UPDATE = "memory error without loss", "memory error in the optimizer's update"
"""Memory errors in which no memory that is needed was lost, and those that no mechanism can repair online."""

NEEDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "replicas": {
            "TTP": "a surviving replica of every rank must be there to save the end-of-life checkpoint",
            "UCE": "a rank with a memory error is repaired with the state of its replica",
            "ARF": "a replacement rank gets its state from its replica",
        },
        "sink size 1": {
            "TTP": "the number of the saved step is right only when one step is one sink",
            "UCE": "only whole sinks can be replayed, so the failing step must be one sink",
            "HCCE": "the step that failed to communicate is replayed, so it must be one sink",
            "ARF": "the step in which the rank was lost is replayed, so it must be one sink",
        },
        "MindIO": {
            "TTP": "the MindIO TFT controller collects the ranks' states and chooses who saves",
            "UCE": "the MindIO TFT controller steers the repair from the replica",
            "HCCE": "the MindIO TFT controller steers stop, clean and replay on all ranks",
            "ARF": "the MindIO TFT controller steers the rebuilding of the groups and the copy to the new rank",
            "TSP": "the MindIO TFT controller pauses the ranks after the same step",
        },
    }
)
"""Need → mechanism → why. A mechanism that is missing under a need does not have it: TRE and RSC have none.

Source: the document's table of constraints and dependencies.
"""


def switched_on(protection: Iterable[Mechanism]) -> tuple[Mechanism, ...]:
    """The mechanisms that are on, those that another one implies included, in the order of the first mention."""
    on: dict[Mechanism, None] = {}
    for mechanism in protection:
        on[mechanism] = None
    for mechanism in tuple(on):
        if mechanism in IMPLIES:
            on[IMPLIES[mechanism]] = None
    return tuple(on)


def acts_on_loss(on: Iterable[Mechanism]) -> Mechanism | None:
    """The mechanism that decides the outcome when ranks are lost, None if none of those that are on can act."""
    available = set(on)
    return next((mechanism for mechanism in FOR_LOST_RANKS if mechanism in available), None)


def acts_on_error(effect: str, on: Iterable[Mechanism]) -> Mechanism | None:
    """The online mechanism that repairs an error of the device, None if none of those that are on does.

    MindSpore's wrapper around the training handles a communication error not only with HCCE on, but also with UCE.
    """
    available = set(on)
    if effect in (MEMORY, LOW_LEVEL) and "UCE" in available:
        return "UCE"
    if effect == COMMUNICATION and available & {"HCCE", "UCE"}:
        return "HCCE"
    return None


def need_message(mechanism: str, need: str) -> str | None:
    """Why a mechanism has a need, quoting the document; None if it has not. One message for each cell of the table."""
    why = NEEDS[need].get(mechanism)
    return why and f"{mechanism} needs {need} ({DOCUMENT}, constraints and dependencies): {why}"
