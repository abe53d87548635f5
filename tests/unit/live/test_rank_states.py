"""A rank's state is what its last event says: a rank that trained its last step was not stopped."""

from __future__ import annotations

import pytest

from chaos.history.event import Event
from chaos.live.ranks import Process
from chaos.live.state import LETTERS
from chaos.live.terminal.strip import letters


@pytest.mark.parametrize(
    ("event", "name", "state"),
    [
        ("step.end", None, "training"),
        ("train.end", None, "trained"),
        ("handler.enter", "stop", "stopped"),
        ("handler.enter", "repair", "repairing"),
        ("pause.enter", None, "stopped"),
    ],
)
def test_the_last_event_decides(event: str, name: str | None, state: str) -> None:
    process = Process(0)
    process.take(Event("step.begin", 1, 1, "rank_0", 1, "train", 0, 77, {"step": 1}))
    process.take(Event(event, 2, 2, "rank_0", 2, "train", 0, 77, {} if name is None else {"name": name}))
    assert process.state == state


def test_each_state_has_a_letter_of_its_own_and_is_shown() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert letters(list(LETTERS)).plain == "".join(LETTERS.values())
    assert all(style for style in (span.style for span in letters(list(LETTERS)).spans))
