"""Changes by defects to the calls of the SDK's handlers, and to the processes of ranks, in a history."""

from __future__ import annotations

from typing import Any

from chaos.selftest.defect import Mutate
from chaos.selftest.records import Record, Records, recorded


def call(records: Records, after: Record, name: str, **values: Any) -> None:
    """Record that a handler is called and returns, right after another event of the same rank."""
    place = {"attempt": after["attempt"], "rank": after["rank"], "pid": after["pid"]}
    for event, fields in (("handler.enter", values), ("handler.exit", {"ok": True})):
        new = records.insert(after, event=event)
        for key in [key for key in new if key not in ("seq", "mono", "wall", "event")]:
            del new[key]
        new.update(place, name=name, **fields)
        after = new


def called_again(name: str, rank: int) -> Mutate:
    """Return a mutation: the handler of a rank was called once more after it had returned."""

    def change(records: Records) -> None:
        enter = records.last("handler.enter", name=name, rank=rank)
        left = records.last("handler.exit", name=name, rank=rank)
        call(records, left, name, **{key: enter[key] for key in ("step",) if key in enter})

    return recorded(change)


def called(name: str, rank: int, after: str, **values: Any) -> Mutate:
    """Return a mutation: a handler of a rank was called after another one had returned."""
    return recorded(lambda records: call(records, records.last("handler.exit", name=after, rank=rank), name, **values))


def never_called(name: str, *ranks: int) -> Mutate:
    """Return a mutation: a handler of these ranks was not called."""

    def change(records: Records) -> None:
        for rank in ranks:
            records.drop(records.all("handler.enter", name=name, rank=rank))
            records.drop(records.all("handler.exit", name=name, rank=rank))

    return recorded(change)


def started_anew(rank: int) -> Mutate:
    """Return a mutation: a rank got a needless second process in the first launch, beside its own."""

    def change(records: Records) -> None:
        process = records.first("rank.found", attempt="train", rank=rank)
        old, new = process["pid"], process["pid"] + 50_000
        landed = records.last("fault.landed")
        later = {"mono": landed["mono"] + 1000, "wall": landed["wall"] + 1000, "pid": new}
        records.insert(landed, **{**process, **later})
        records.insert(records.last("rank.exit", attempt="train", rank=rank), pid=new)
        starts = [records.first(event, rank=rank, pid=old) for event in ("writer.start", "agent.start")]
        records.files[f"train-rank_{rank}-{new}.jsonl"] = [{**record, **later} for record in starts]

    return recorded(change)
