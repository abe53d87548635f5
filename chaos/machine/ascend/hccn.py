"""Readers for the output of ``hccn_tool`` about a card's network.

Source: MindCluster's documents (collecting logs; constructing a fault) and the table of states in hccn_tool's own
source, which has Success, Socket fail, Receive timeout, Unreachable, Time exceeded, Fault, Init, Thread error, Detect
ip set and Unknown. A recorded output of an earlier driver says ``Socket failed``.
"""

from __future__ import annotations

import re
from typing import Literal

from chaos.machine.ascend.unreadable import UnreadableOutput

HEALTH = (
    *("Success", "Socket fail", "Socket failed", "Receive timeout", "Unreachable", "Time exceeded", "Fault", "Init"),
    *("Thread error", "Detect ip set", "Unknown"),
)
"""States of ``-net_health -g``. A link that was taken down shows as Fault."""

SUCCESS, FAULT = "Success", "Fault"

_HEALTH = re.compile(r"net health status: ([A-Za-z ]+?)[ \t]*")
_LINK = re.compile(r"link status: (UP|DOWN)[ \t]*")


def read_net_health(text: str) -> str:
    """Return the state that ``hccn_tool -i ID -net_health -g`` prints, one of :data:`HEALTH`.

    Raises UnreadableOutput.
    """
    match = _HEALTH.fullmatch(text.strip("\r\n"))
    if match is None or match[1] not in HEALTH:
        raise UnreadableOutput("hccn_tool -net_health -g", "no known state of the network", text)
    return match[1]


def read_link(text: str) -> Literal["UP", "DOWN"]:
    """Return the state that ``hccn_tool -i ID -link -g`` prints. Raises UnreadableOutput."""
    match = _LINK.fullmatch(text.strip("\r\n"))
    if match is None:
        raise UnreadableOutput("hccn_tool -link -g", "no state of the link", text)
    return "UP" if match[1] == "UP" else "DOWN"
