"""A job for which too few files may be open is refused before it starts, with the limit and what raises it."""

from __future__ import annotations

import resource

import pytest

from chaos.base.refusal import Refused
from chaos.run.open_files import refuse_too_few


def limits(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_NOFILE: (soft, hard)}.__getitem__)


@pytest.mark.parametrize(("soft", "ranks"), [(128, 32), (1024, 480), (resource.RLIM_INFINITY, 1_000_000)])
def test_as_many_as_are_needed_are_enough(monkeypatch: pytest.MonkeyPatch, soft: int, ranks: int) -> None:
    limits(monkeypatch, soft, soft)
    refuse_too_few(ranks)


def test_a_soft_limit_that_is_too_small_is_named_with_what_raises_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 1024, 524_288)
    with pytest.raises(Refused) as refused:
        refuse_too_few(1000)
    assert str(refused.value) == (
        "a job of 1,000 ranks on this host needs 2,064 open files in one process (2 for each rank, and 64 besides), "
        "and the limit of open files (RLIMIT_NOFILE) is 1,024; "
        "call `ulimit -n 2064` in this shell, and then chaos again"
    )


def test_a_hard_limit_that_is_too_small_is_to_be_raised_first(monkeypatch: pytest.MonkeyPatch) -> None:
    limits(monkeypatch, 1024, 2048)
    with pytest.raises(Refused, match=r"is 1,024; the hard limit is 2,048: raise it first, .*`ulimit -Hn 2064`"):
        refuse_too_few(1000)
