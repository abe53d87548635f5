"""Defects of the facts about other hosts: the order of a reboot, the boot, the files that came here, the clock."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import removed, rewritten
from chaos.selftest.records import Record, Records, chain, recorded

BASE = "host-reboot"
REBOOTED, OTHER = 1, 0
"""The node with the rebooted host, and the node that goes on."""

_NOT_ORDERED = "nothing shows that this run ordered the reboot of the node of rank"
_NOT_REBOOTED = "is not known to have booted again"
_FETCHED = "the files of every host were copied here"
_CLOCKS = "all monotonic times come from one clock, or from clocks with a measured offset"


_defect = partial(file_defect, base=BASE, check="injection", verdict="unknown")


def _booted(key: str, value: str) -> Mutate:
    """Return a mutation of one boot of the node, as the landing records it for every rank there."""

    def change(records: Records) -> None:
        for entry in records.first("fault.landed")["evidence"]:
            entry["boot"][key] = entry["boot"].get(value)

    return recorded(change)


def _host_of(records: Records, node: int) -> object:
    return records.first("clock", node=node)["host"]


def _ordered_elsewhere(records: Records) -> None:
    records.first("host.reboot").update(node=OTHER, host=_host_of(records, OTHER))


def _ordered_afterwards(records: Records) -> None:
    """Let the host have booted again by itself; the order came when that was observed."""
    order, landed = records.first("host.reboot"), records.first("fault.landed")
    late = records.insert(landed, **{key: value for key, value in order.items() if key not in ("mono", "wall")})
    for key in set(late) - set(order):
        del late[key]
    records.drop([order])


def _reported_of_host(event: str, node: int, **what: object) -> Mutate:
    """Return a mutation: the platform reports something of a host when the first launch has ended."""

    def change(records: Records) -> None:
        after = records.last("attempt.end", attempt="train")
        records.insert(after, event=event, node=node, host=_host_of(records, node), **what)

    return recorded(change)


def _unmeasured(records: Records) -> None:
    records.drop(records.all("clock", node=REBOOTED))


def _hardly_known(records: Records) -> None:
    for record in records.all("clock", node=OTHER):
        record["error"] = 2_000_000_000


def _half_a_line(content: bytes) -> bytes:
    return content.rstrip(b"\0")[:-20]


def _never_away(records: Records) -> None:
    """Put the ranks of the resumed job into the boot that is said to have ended."""
    boots = {entry["boot"]["before"] for entry in records.first("fault.landed")["evidence"]}
    for record in _starts_on(records, REBOOTED):
        (record["boot"],) = boots


def _starts_on(records: Records, node: int) -> list[Record]:
    ranks = {record["rank"] for record in records.all("rank.found", attempt="resume", node=node)}
    return [record for record in records.all("writer.start", attempt="resume") if record["rank"] in ranks]


def _another_boot_ended(records: Records) -> None:
    for entry in records.first("fault.landed")["evidence"]:
        entry["boot"]["before"] = "00000000-0000-4000-8000-000000000000"


DEFECTS = (
    _defect(
        "reboot-not-ordered",
        "The host booted again without an order of this run.",
        recorded(lambda records: records.drop(records.all("host.reboot"))),
        _NOT_ORDERED,
    ),
    _defect(
        "reboot-ordered-of-the-other-host",
        "The reboot was ordered of the host that went on.",
        recorded(_ordered_elsewhere),
        _NOT_ORDERED,
    ),
    _defect(
        "reboot-ordered-afterwards",
        "The reboot was ordered when the host had booted again.",
        recorded(_ordered_afterwards),
        _NOT_ORDERED,
    ),
    _defect(
        "reboot-without-another-boot",
        "The record says that the host booted again, and the host is in the same boot as before.",
        _booted("after", "before"),
        _NOT_REBOOTED,
    ),
    _defect(
        "reboot-never-seen-again",
        "The boot in which the host came back is not recorded.",
        _booted("after", "nothing"),
        _NOT_REBOOTED,
    ),
    _defect(
        "reboot-from-an-unknown-boot",
        "The boot in which the host was before is not recorded.",
        _booted("before", "nothing"),
        _NOT_REBOOTED,
    ),
    _defect(
        "resumed-in-the-boot-that-ended",
        "The resumed ranks of the host that was rebooted are in the boot that had ended.",
        recorded(_never_away),
        "of attempt resume began in the boot",
        "which is said to have ended",
    ),
    _defect(
        "reboot-of-another-boot",
        "The boot that ended is not the boot of the host's ranks.",
        recorded(_another_boot_ended),
        "nothing shows that rank 2 was in the boot 00000000-0000-4000-8000-000000000000",
    ),
    _defect(
        "host-files-not-fetched",
        "A history of the other host could not be brought here.",
        chain(
            removed("history/train-rank_0-*.jsonl"),
            _reported_of_host(
                "host.unfetched", OTHER, files={"history/train-rank_0-1.jsonl": "Connection reset by peer"}
            ),
        ),
        _FETCHED,
        "history/train-rank_0-1.jsonl (Connection reset by peer)",
        check="history",
    ),
    _defect(
        "host-nothing-fetched",
        "No file of the other host could be brought here in the end, and no reason is recorded.",
        _reported_of_host("host.unfetched", OTHER, files={}),
        _FETCHED,
        "all (no reason is recorded)",
        check="history",
    ),
    _defect(
        "host-lost-from-sight",
        "The connection to the other host was lost, and what the host did afterwards is unknown.",
        _reported_of_host("host.lost", OTHER, why="the connection is silent"),
        _FETCHED,
        "what the host did afterwards is unknown",
        check="history",
    ),
    _defect(
        "host-clock-not-measured",
        "The offset of the rebooted host's clock was never measured.",
        recorded(_unmeasured),
        _CLOCKS,
        "monotonic clocks that cannot be compared",
        check="history",
    ),
    _defect(
        "host-clock-hardly-known",
        "The clock of the other host was measured with an error of two seconds.",
        recorded(_hardly_known),
        "no time of another host may be wrong by more than 1 s",
        check="history",
    ),
    _defect(
        "half-a-line-on-the-host-that-went-on",
        "The last line of a rank on the other host is torn, as after a reboot of that host.",
        rewritten("history/train-rank_0-*.jsonl", _half_a_line),
        "every line of the history is complete and in order",
        "the last line is torn",
        check="history",
    ),
    _defect(
        "host-whose-launcher-has-no-end",
        "The end of the other host's launcher is not recorded; the rebooted host's launcher ended with 0.",
        recorded(lambda records: records.drop(records.all("launcher.exit", attempt="resume", node=OTHER))),
        "no exit status of the launcher of node 0 was recorded",
        check="hygiene",
    ),
)
