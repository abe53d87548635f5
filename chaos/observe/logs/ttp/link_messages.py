"""Messages of the link layer of MindIO TFT: connections between the ranks and the controller."""

from __future__ import annotations

from chaos.observe.logs.patterns import known

LINK = (
    known("acc.link_reset", "receive header failed", r"Link (?P<link>\d+) receive header failed, (?P<reason>[^,]+)"),
    known(
        "acc.receive_failed",
        "receive msg failed",
        r"connRank: (?P<rank>-?\d+), receive msg failed\. ret: (?P<ret>-?\d+)",
    ),
    known(
        "acc.retry",
        "retry times",
        r"connRank: (?P<rank>-?\d+) Trying to connect to \S+ errno:(?P<errno>\d+), retry times:(?P<tries>\d+)",
    ),
    known("acc.connected", "Connected from", r"Connected from (?P<peer>\S+) successfully"),
    known("acc.reconnect", "Reconnecting", r"connRank: (?P<rank>-?\d+) Reconnecting, errno:(?P<errno>\d+)"),
    known(
        "acc.receive_failed",
        "recv msg_msg failed",
        r"connRank: (?P<rank>-?\d+), recv msg_msg failed: (?P<ret>-?\d+), msgType: (?P<message>-?\d+)",
    ),
    known("acc.send_failed", "Failed to send msg", r"to peer in link (?P<link>\d+), errno (?P<errno>\d+)"),
    known(
        "acc.connecting", "Trying to connect to", r"connRank: (?P<rank>-?\d+) Trying to connect to (?P<peer_text>\S+)$"
    ),
    known("acc.reached", "Connect to", r"Connect to (?P<peer_text>\S+) successfully"),
    known("acc.tries", "connect max times", r"connRank: (?P<rank>-?\d+) connect max times: (?P<tries>\d+)"),
    known("acc.server", "set server ip", r"ip\( (?P<address_text>\S+) \) and port\( (?P<port>\d+) \)"),
    known("acc.waiting", "sleep for link connect", r"connRank: (?P<rank>-?\d+), sleep for link connect"),
    known(
        "acc.send_failed",
        "Failed to send data to",
        r"Failed to send data to (?P<peer_text>\S+), errno (?P<errno>-?\d+)",
    ),
    known(
        "acc.read_failed",
        " data from",
        r"Failed to (?:read|receive) data from (?P<peer_text>\S+), errno (?P<errno>-?\d+)",
    ),
    known(
        "acc.connect_failed",
        "Failed to connect to",
        r"Failed to connect to (?P<peer_text>\S+) after tried (?P<tries>\d+) times",
    ),
    known(
        "acc.connect_failed",
        "connecting handshake from",
        r"connecting handshake from (?P<peer_text>\S+), errno (?P<errno>-?\d+), result (?P<ret>-?\d+)",
    ),
    known("acc.assertion", "Assert ", r"^Assert (?P<condition_text>.{1,200})"),
)
