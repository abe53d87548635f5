"""Holds a job's story against what the table expects, and two stories against each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any

from tests.conformance.driver import DEFAULTS, Story
from tests.conformance.training import undisturbed

HANDLERS = ("save_ckpt", "rename", "exit", "stop", "clean", "repair", "rollback", "rebuild_group", "stream_sync")
Unawaited = Mapping[int, Collection[str]]
"""Handlers, by rank, for whose end nobody waits (``unawaited`` of the table): their place in time is not promised."""

NONE: Unawaited = MappingProxyType({})
NO_ARGUMENTS = ("rename", "exit")
"""These handlers get the context, but not the step's arguments; stream_sync gets neither."""


def differences(expected: dict[str, Any], story: Story) -> list[str]:
    """What the story does not tell as the table does; nothing when it conforms."""
    job = {**DEFAULTS, **expected["job"]}
    found = []
    exits = [story.exits[name] for name in sorted(story.exits)]
    found += _unequal("exit codes", expected["exits"], exits)
    if "states" in expected:
        found += _unequal("states", without_end(expected["states"]), without_end(story.states()))
    found += _unequal("saved", expected.get("saved", {}), story.saved)
    unawaited = expected.get("unawaited", {})
    if expected.get("ending") != "free":
        found += _unequal("order of handlers", expected.get("order", []), order(story, unawaited))
    for rank in unawaited:
        found += _unordered(expected["order"], story, str(rank))
    for rank in story.records:
        found += misuses(story, rank)
    for rank, handlers in expected.get("handlers", {}).items():
        found += _unequal(f"handlers of rank {rank}", handlers, brief(story, str(rank)))
    for rank, calls in expected.get("calls", {}).items():
        seen = [
            [name, arguments, *([] if result is None else [result])]
            for name, arguments, result in answers(story, str(rank))
        ]
        found += _unequal(f"calls of rank {rank}", calls, seen)
    if expected.get("equal"):
        ends = {rank: list(end) for rank, end in story.endings().items()}
        same = [undisturbed(job["ranks"], job["steps"]), job["steps"]]
        survivors = [name for name, code in story.exits.items() if code == 0]
        found += _unequal("final states", dict.fromkeys(survivors, same), ends)
    if "dialogue" in expected:
        found += _unequal("dialogue with the agent", expected["dialogue"], said(story))
    return found


def brief(story: Story, rank: str) -> list[list[Any]]:
    """A rank's handlers without what all are given alike."""
    return [[name, *arguments[: len(arguments) - _common(name)]] for name, *arguments in story.handlers(rank)]


def _common(name: str) -> int:
    """How many arguments at the end every call of this handler gets alike."""
    return {"stream_sync": 0}.get(name, 1 if name in NO_ARGUMENTS else 2)


def misuses(story: Story, rank: str) -> list[str]:
    """Handlers that did not get the step's arguments and their own context."""
    found = []
    for name, *arguments in story.handlers(rank):
        number, _, new = rank.partition("+")
        given = None if new and name == "rebuild_group" else f"arguments of {number}"  # it has not set them by then
        common = [f"context of {name}"] if name in NO_ARGUMENTS else [given, f"context of {name}"]
        if (count := _common(name)) and arguments[-count:] != common:
            found.append(f"{name} of rank {rank} got {arguments}, not {common} at the end")
    return found


def answers(story: Story, rank: str) -> list[list[Any]]:
    """A rank's calls from its first report on, without those that a handler makes."""
    calls = [call for call in story.calls(rank) if call[0] not in ("tft_get_repair_type", "tft_is_reboot_node")]
    return [list(call) for call in calls]


def said(story: Story) -> list[list[Any]]:
    """The dialogue without what only later versions of the SDK say: the faults once more, when all have stopped."""
    kept: list[list[Any]] = []
    for one in story.dialogue():
        if not (one[0] == "report_fault_ranks" and kept and kept[-1][0] == "on_global_rank"):
            kept.append(one)
    return kept


def order(story: Story, unawaited: Unawaited = NONE) -> list[str]:
    """The handlers in the order of time over all ranks, each once for as long as no other comes between.

    A phase counts as one only when it has ended on every rank before the next begins: else its name comes again.
    ``unawaited`` handlers have no place in it.
    """
    moments = []
    for rank, lines in story.records.items():
        left_out = _left_out(unawaited, rank)
        moments += [
            (line["at"], line["name"])
            for line in lines
            if line["kind"] in ("handler", "returned") and line["name"] in HANDLERS and line["name"] not in left_out
        ]
    return [name for name, _ in groupby(name for _, name in sorted(moments))]


def _left_out(unawaited: Unawaited, rank: str) -> Collection[str]:
    number = rank.partition("+")[0]
    return unawaited.get(int(number), ()) if number.isdecimal() else ()  # the cluster's agent has records too


def _unordered(wanted: list[str], story: Story, rank: str) -> list[str]:
    """Handlers of one rank that were called in another order than the table's, or again: any may be left out."""
    names = [name for name, *_ in story.handlers(rank)]
    return _unequal(f"order in rank {rank}", [name for name in wanted if name in names], names)


def told(story: Story, unawaited: Unawaited = NONE) -> dict[str, Any]:
    """What two SDKs must tell alike, but for ``unawaited`` handlers."""
    return {
        "exits": story.exits,
        "states": without_end(story.states()),
        "saved": story.saved,
        "order": order(story, unawaited),
        "handlers": {
            rank: [call for call in story.handlers(rank) if call[0] not in _left_out(unawaited, rank)]
            for rank in story.records
        },
        "calls": {rank: answers(story, rank) for rank in story.records},
        "dialogue": said(story),
        "ends": story.endings(),
    }


def without_end(states: list[str]) -> list[str]:
    """The states but for those that a buffered log may have lost (see the table)."""
    kept = list(states)
    while kept and kept[-1] in ("EXIT", "FINAL"):
        kept.pop()
    return kept


def seconds(story: Story) -> dict[str, float]:
    """The times that the table may bound, in seconds from the fault on."""
    began = float(story.acted()["at"])
    lines = [line for lines in story.records.values() for line in lines]
    found = {}
    for key, name, pick in (("save", "save_ckpt", min), ("stop", "stop", min), ("exit", "exit", min)):
        if times := [line["at"] for line in lines if line["kind"] == "handler" and line["name"] == name]:
            found[key] = pick(times) - began
    if times := [line["at"] for line in lines if line["kind"] == "call" and line["name"] == "tft_wait_next_action"]:
        found["back"] = max(times) - began
    abnormal = [event for event in story.log if event.kind == "ttp.state" and event.fields["state"] == "ABNORMAL"]
    if abnormal and abnormal[0].wall_ns is not None:
        found["detected"] = abnormal[0].wall_ns / 1e9 - float(story.acted()["wall"])
    return found


def lateness(story: Story) -> float:
    """How long the machine kept the most disturbed process waiting, from just before the fault on."""
    began = float(story.acted()["at"])
    gained = [0.0]
    for lines in story.records.values():
        before = [line["late"] for line in lines if line["at"] <= began]
        if lines and before:
            gained.append(lines[-1]["late"] - before[-1])
    return max(gained)


def _unequal(what: str, wanted: Any, seen: Any) -> list[str]:
    return [] if wanted == seen else [f"{what}: expected {wanted}, seen {seen}"]
