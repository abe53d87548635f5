"""HCCL's statements about other members of a communicator: lost heartbeats, stuck members, broken links.

Every member watches some others and passes on its observations. A member is named by the address of its host and the
number of its device there (``10.0.0.1/9``), never by a rank, so the name is in ``remote_text`` and the event has the
rank of the log. Two forms exist: a status at its detection (``... status[LOST] by rank ...``, of level INFO), and the
suspicion that HCCL prints beside a timeout, also as a line of its own within the text of an error code. Facts: the
source and the documents of HCCL.
"""

from __future__ import annotations

from chaos.observe.logs.patterns import Known, known

_MEMBER = r"[0-9a-zA-Z.:%_-]{1,80}/\d{1,10}"
_KINDS = {
    "device.heartbeat_lost": ("LOST", "Heartbeat Lost Occurred"),
    "device.stuck": ("STUCK", "Stuck Occurred"),
    "device.cqe_error": ("ERROR CQE", "Error cqe Occurred"),
    "device.notify_error": ("NOTIFY", "Notify Wait Error Occurred"),
    "device.retry_refused": ("OPRETRY NOT SUPPORT", "OpRetry Not Supported Occurred"),
    "device.inconsistent": ("INCONSISTENT", "Op Inconsistent Occurred"),
}


def _status(kind: str, status: str) -> Known:
    return known(
        kind,
        f" status[{status}] by ",
        rf"\brank \[(?P<local_text>{_MEMBER})\]: (?:crimer )?rank \[(?P<remote_text>{_MEMBER})\] "
        rf"status\[(?P<status_text>{status})\] by (?:informer )?rank \[(?P<by_text>{_MEMBER})\]",
    )


def _suspicion(kind: str, literal: str, named: str) -> Known:
    return known(
        kind,
        literal,
        rf"Cluster Exception Location\[IP/ID\]:\[(?P<remote_text>{_MEMBER})\]"
        rf"(?:, Arrival Time:\[(?P<arrival_text>[^]]{{1,80}})\])?(?:, Discoverer:\[(?P<by_text>{_MEMBER})\])?"
        rf", ExceptionType:\[(?P<status_text>{named})\](?:, Possible Reason:(?P<reason_text>.{{0,400}}))?",
    )


SUSPICIONS: tuple[Known, ...] = (
    *(_suspicion(kind, f"ExceptionType:[{named}]", named) for kind, (_, named) in _KINDS.items()),
    _suspicion("device.suspected", "Cluster Exception Location", r"[^]]{1,80}"),
)
"""Suspects beside a timeout. ``by_text`` is the member that has noticed it, ``arrival_text`` the time of its report."""

MEMBERS: tuple[Known, ...] = (*(_status(kind, status) for kind, (status, _) in _KINDS.items()), *SUSPICIONS)
"""All forms behind the prefix of a line."""
