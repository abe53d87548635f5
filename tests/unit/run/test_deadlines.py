"""Deadlines grow with the number of ranks, and one that the scenario writes is the scenario's."""

from __future__ import annotations

from chaos.base.growth import in_words
from chaos.base.wait import DeadlineExpired
from chaos.run.deadlines import grown
from chaos.scenario.models.scenario import Deadlines


def test_few_ranks_have_the_deadlines_of_the_page() -> None:
    assert grown(Deadlines(), 16).model_dump() == Deadlines().model_dump()


def test_many_ranks_have_more_of_every_kind_and_the_error_says_how_much() -> None:
    few, many = Deadlines().model_dump(), grown(Deadlines(), 128)
    assert all(getattr(many, name) > seconds for name, seconds in few.items())
    assert str(DeadlineExpired("start", many.start, "ranks 3-4 never joined")) == (
        "deadline 'start' of 404 s (180 s, and 2 s for each of the 112 ranks beyond 16) has expired: "
        "ranks 3-4 never joined"
    )


def test_what_is_written_stays_as_it_is() -> None:
    many = grown(Deadlines(start=12.0), 128)
    assert in_words(many.start) == "12 s"
    assert many.end > Deadlines().end
