"""Very many steps are drawn as blocks, and what is worth a look stays single."""

from __future__ import annotations

from chaos.report.page.step_blocks import FINE, Step, blocks


def steps(count: int) -> list[Step]:
    return [(number, float(number), number + 0.9) for number in range(1, count + 1)]


def test_few_steps_are_all_single() -> None:
    assert blocks(steps(5), 10) == tuple((number, number, float(number), number + 0.9) for number in range(1, 6))


def test_many_steps_become_blocks_without_a_gap_or_an_overlap() -> None:
    merged = blocks(steps(10_000), 200)
    assert len(merged) <= 220
    assert [number for first, last, _, _ in merged for number in range(first, last + 1)] == list(range(1, 10_001))
    assert all(begin == first and end == last + 0.9 for first, last, begin, end in merged)


def test_steps_at_both_ends_and_beside_a_moment_stay_single() -> None:
    single = {first for first, last, _, _ in blocks(steps(10_000), 200, moments=[5_000.5]) if first == last}
    assert set(range(1, FINE + 1)) | set(range(10_000 - FINE, 10_001)) | set(range(4_990, 5_010)) <= single


def test_steps_beside_a_long_pause_stay_single() -> None:
    paused = [(number, begin + 60 * (number > 700), end + 60 * (number > 700)) for number, begin, end in steps(10_000)]
    single = {first for first, last, _, _ in blocks(paused, 200) if first == last}
    assert set(range(700 - FINE + 2, 700 + FINE)) <= single
