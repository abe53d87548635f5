"""The stand-in knows whose state is a copy of whose, also from the ranks that are left."""

from __future__ import annotations

from chaos.rehearsal.ttp.replicas import Replicas


def test_a_group_is_known_by_the_first_of_its_ranks_that_reports() -> None:
    replicas = Replicas(4)
    assert replicas.report(1, [0, 1, 2, 3]) is True
    assert replicas.report(3, [3, 2, 1, 0]) is False
    assert replicas.complete()
    assert replicas.savers({1, 3}) == ([1], [])


def test_nothing_can_be_saved_before_every_group_is_known() -> None:
    replicas = Replicas(4)
    replicas.report(0, [0, 2])
    assert not replicas.complete()
    replicas.report(3, [1, 3])
    assert replicas.complete()
    assert replicas.savers({2}) == ([2], [(1, 3)])
