"""Gathers the findings of one check.

A check works through aspects (one promise each). Every aspect ends with :meth:`Collector.settle`: it becomes a pass
only without a worse finding about it. The same finding about many ranks is merged into one, and findings of one kind
are capped, so a defect on 1,000 ranks stays readable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from chaos.base.rank_sets import named, rank_set
from chaos.evidence.finding import Finding, Verdict
from chaos.evidence.statement_data import NO_DATA, StatementData

CAP = 5
"""Findings of one aspect and verdict that are written out; the rest are counted."""

_RANK = re.compile(r"(?<![a-z])(?:rank[ _]|worker_)(\d{1,9})\b")

BY_LOG = ", by lines of a log alone"
"""Ends a statement whose only evidence is a log."""


class Collector:
    """Builds the list that a check returns. One instance lives for one call of one check."""

    def __init__(self, check: str) -> None:
        self._check = check
        self._done: list[Finding] = []
        self._aspect: list[Finding] = []

    def fail(self, expected: str, observation: str, *where: str, data: StatementData = NO_DATA) -> None:
        """Add a fail: the promise was broken, and this is the evidence."""
        self._add("fail", expected, observation, where, data)

    def unknown(self, expected: str, observation: str, *where: str, data: StatementData = NO_DATA) -> None:
        """Add an unknown: the evidence that would decide is missing or not credible."""
        self._add("unknown", expected, observation, where, data)

    def settle(
        self, expected: str, observation: str, *where: str, by_log: bool = False, data: StatementData = NO_DATA
    ) -> bool:
        """End an aspect. Returns True and adds a pass if it has no finding.

        ``by_log``: only lines of a log show it, and the finding says so.
        """
        good = not self._aspect
        if good:
            self._add("pass", expected, f"{observation}{BY_LOG}" if by_log else observation, where, data, by_log=by_log)
        self.close()
        return good

    def close(self) -> None:
        """End an aspect without a pass of its own."""
        for verdict in ("fail", "unknown", "pass"):
            same = _merged([finding for finding in self._aspect if finding.verdict == verdict])
            self._done.extend(same[:CAP])
            if len(same) > CAP:
                rest = same[CAP]
                more = f"{len(same) - CAP} more of the same kind, the next: {rest.seen}"
                self._done.append(replace(rest, seen=more, data=_of_all_ranks(rest, same[CAP:])))
        self._aspect = []

    def findings(self) -> list[Finding]:
        """Return all findings."""
        self.close()
        return self._done

    def _add(
        self,
        verdict: Verdict,
        expected: str,
        observation: str,
        where: tuple[str, ...],
        data: StatementData,
        *,
        by_log: bool = False,
    ) -> None:
        places = tuple(dict.fromkeys(place for place in where if place))
        self._aspect.append(Finding(self._check, verdict, expected, observation, places, by_log, data))


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; more than CAP that differ only in a rank's number become a single one."""
    alike: dict[object, dict[int, Finding]] = {}
    for finding in findings:
        if (rank := _only_rank(finding)) is not None:
            alike.setdefault(_without_rank(finding), {}).setdefault(rank, finding)
    merged: list[Finding] = []
    for finding in findings:
        ranks = {} if _only_rank(finding) is None else alike[_without_rank(finding)]
        if len(ranks) <= CAP:
            merged.append(finding)
        elif finding is next(iter(ranks.values())):
            merged.append(_first_of(ranks))
    return merged


def _first_of(ranks: Mapping[int, Finding]) -> Finding:
    """Return the first of these findings, with the ranks of the others, and the places of the first few."""
    (first, *others), (finding, *alike) = ranks, ranks.values()
    observation, findings = f"{finding.seen}; the same of {rank_set(others)}", alike[: CAP - 1]
    places = dict.fromkeys([*finding.where, *(place for similar in findings for place in similar.where)])
    left = sum(not places.keys() >= set(similar.where) for similar in alike[CAP - 1 :])
    if left:
        observation += (
            f"; the places of {named([first, *others[: CAP - 1]])} are listed, those of {left:,} more are not"
        )
    return replace(
        finding, seen=observation, where=tuple(places), data=replace(finding.data, ranks=tuple(sorted(ranks)))
    )


def _of_all_ranks(first: Finding, findings: Sequence[Finding]) -> StatementData:
    """Return the data of the first of these findings, with the ranks of all."""
    ranks = {rank for finding in findings for rank in finding.data.ranks}
    return replace(first.data, ranks=tuple(sorted(ranks)))


def _only_rank(finding: Finding) -> int | None:
    """Return the rank of a finding; None without a rank, or where its words or its data name several.

    A check that gives no data, such as another package's, names the rank in its words, or else in its first place.
    """
    spoken = {int(number) for number in _RANK.findall(f"{finding.expected}\n{finding.seen}")}
    place = {int(number) for number in _RANK.findall("".join(finding.where[:1]))}
    ranks = spoken.union(finding.data.ranks) or place
    return ranks.pop() if len(ranks) == 1 else None


def _without_rank(finding: Finding) -> tuple[str, str, bool]:
    return _RANK.sub("rank", finding.expected), _RANK.sub("rank", finding.seen), finding.by_log
