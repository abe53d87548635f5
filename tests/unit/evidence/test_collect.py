"""What is found of many ranks alike is said once, with the ranks of which it is said; nothing else is put together."""

from __future__ import annotations

import pytest

from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding


def found(*texts: tuple[str, str, str], verdict: str = "fail") -> list[Finding]:
    """The findings of an aspect of which this is said: what was expected, what was seen, and where."""
    collector = Collector("hygiene")
    say = collector.fail if verdict == "fail" else collector.unknown
    for expected, seen, where in texts:
        say(expected, seen, where)
    assert not collector.settle("good", "all is well")
    return collector.findings()


def about(rank: int, seen: str = "exit code 9") -> tuple[str, str, str]:
    return f"rank {rank} ends with exit code 1", seen, f"history/train-rank_{rank}.jsonl:8"


@pytest.mark.parametrize("verdict", ["fail", "unknown"])
def test_many_ranks_of_which_the_same_is_said_are_one_finding(verdict: str) -> None:
    (finding,) = found(*(about(rank) for rank in [*range(2), *range(3, 128)]), verdict=verdict)
    assert (finding.verdict, finding.expected) == (verdict, "rank 0 ends with exit code 1")
    assert finding.seen == (
        "exit code 9; the same of ranks 1,3-127 (126 in all); "
        "the places of ranks 0-1,3-5 are listed, those of 122 more are not"
    )
    assert finding.where == tuple(f"history/train-rank_{rank}.jsonl:8" for rank in (0, 1, 3, 4, 5))


def test_the_rank_may_be_named_in_what_was_seen_too() -> None:
    texts = [(f"rank {rank} exits", f"rank {rank} did not, see worker_{rank}.log", "") for rank in range(8)]
    (finding,) = found(*texts)
    assert finding.seen == "rank 0 did not, see worker_0.log; the same of ranks 1-7 (7 in all)"


def test_the_rank_may_be_named_by_the_place_alone() -> None:
    texts = [
        ("every line is whole", "the last line is torn", f"history/train-rank_{rank}-7.jsonl:8") for rank in range(8)
    ]
    (finding,) = found(*texts)
    assert finding.seen.startswith("the last line is torn; the same of ranks 1-7 (7 in all); the places of ranks 0-4 ")
    assert finding.seen.endswith(", those of 3 more are not")


def test_a_place_that_all_share_is_listed_once() -> None:
    (finding,) = found(*((f"rank {rank} exits", "it runs", "scenario.yaml:12") for rank in range(8)))
    assert (finding.seen, finding.where) == ("it runs; the same of ranks 1-7 (7 in all)", ("scenario.yaml:12",))


def test_what_differs_stays_apart_and_is_counted() -> None:
    several = found(*(about(rank) for rank in range(40)), about(50, "exit code 3"), about(51, "SIGKILL"))
    assert [finding.seen for finding in several] == [
        "exit code 9; the same of ranks 1-39 (39 in all); the places of ranks 0-4 are listed, those of 35 more are not",
        "exit code 3",
        "SIGKILL",
    ]
    many = found(*(about(rank, f"exit code {rank + 2}") for rank in range(40)))
    assert len(many) == 6 and many[-1].seen == "35 more of the same kind, the next: exit code 7"


def test_few_are_written_out_and_so_is_what_names_two_ranks() -> None:
    assert len(found(*(about(rank) for rank in range(5)))) == 5
    pairs = found(*((f"rank {rank} agrees", f"it has the weights of rank {rank + 1}", "") for rank in range(40)))
    assert len(pairs) == 6
