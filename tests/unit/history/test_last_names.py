"""Every rank's save of a directory has the name that one rank gives to it, also a save that ends after the renaming."""

from __future__ import annotations

from typing import Any

from chaos.history.event import Event
from chaos.history.last_names import with_last_names


def event(name: str, rank: int, **data: Any) -> Event:
    return Event(f"checkpoint.{name}", 0, 0, "agent", 0, "train", rank, 7 + rank, data)


def last_names(*events: Event) -> list[tuple[str, int | None, str]]:
    return [
        (save.event.partition(".")[2], save.rank, save.data["path"])
        for save in with_last_names(events)
        if save.event != "checkpoint.renamed"
    ]


RENAMED = event("renamed", 0, path="/x.tmp", to="/x")


def test_one_rank_renames_the_directory_of_all() -> None:
    saves = [event(name, rank, path="/x.tmp") for name in ("begin", "end") for rank in (0, 1)]
    assert last_names(*saves, RENAMED) == [("begin", 0, "/x"), ("begin", 1, "/x"), ("end", 0, "/x"), ("end", 1, "/x")]


def test_a_save_that_ends_after_the_renaming_is_of_the_same_file() -> None:
    first = [event("begin", 0, path="/x.tmp"), event("begin", 1, path="/x.tmp"), event("end", 0, path="/x.tmp")]
    again = event("renamed", 0, path="/x", to="/y")
    events = [*first, RENAMED, event("end", 1, path="/x.tmp"), again]
    assert last_names(*events) == [("begin", 0, "/y"), ("begin", 1, "/y"), ("end", 0, "/y"), ("end", 1, "/y")]


def test_the_next_save_under_the_first_name_is_another_file() -> None:
    saves = [event("begin", 1, path="/x.tmp"), event("end", 1, path="/x.tmp")]
    assert last_names(*saves, RENAMED, *saves)[2:] == [("begin", 1, "/x.tmp"), ("end", 1, "/x.tmp")]
