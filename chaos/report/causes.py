"""The statements of a result that do not pass, merged by kind and over ranks, causes apart from what follows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from chaos.base.rank_sets import named
from chaos.checks.history.check import NAME as HISTORY
from chaos.checks.hygiene.check import NAME as HYGIENE
from chaos.checks.injection.check import NAME as INJECTION
from chaos.observe.stack_words import apart
from chaos.report.result import CheckResult

_RANK = re.compile(r"(?<![a-z])rank (\d{1,9})\b(?!'s)")
_OF_A_RANK = re.compile(r"(?<![a-z])(?:rank[ _]|worker_)(\d{1,9})\b")
_PREPOSITION = re.compile(r"\b(?:at|by|for|from|of|on|to|with)\s$")
_ALIKE = re.compile(r"; the same of ranks? ([\d,-]+)(?: \([^)]*\))?(?:; the places of .*)?$")
_NEXT = re.compile(r"^([\d,]+) more of the same kind, the next: ")
_MOST_RANKS = 1 << 16

_MASKS = (
    (re.compile(r"(?<![a-z])ranks? [\d,…-]+(?: \([^)]*\))?"), "rank #"),
    (re.compile(r": [^:]*? and [\d,]+ more \([\d,]+ in all\)"), ": …"),
    (re.compile(r"\S*/\S*"), "/"),
    (re.compile(r"-\d{8}-\d{6}-[0-9a-f]{4}\b"), "-#"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "#"),
    (re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{8,}\b"), "#"),
    (re.compile(r"-?0x[0-9a-f]+(?:\.[0-9a-f]*)?(?:p[+-]?\d+)?"), "#"),
    (re.compile(r"\d+(?:[.,:]\d+)*(?:e[+-]?\d+)?"), "#"),
    (re.compile(r"\[[#, ]*\]"), "[#]"),
)

_FLOAT = r"-?0x[01](?:\.[0-9a-f]+)?p[+-]\d{1,4}"
_DOUBLED = re.compile(rf"(-?(?:\d[\d.]*(?:e[+-]?\d+)?|nan|inf)) \((?:{_FLOAT}|-?nan|-?inf)\)")
_HEX = re.compile(_FLOAT)


@dataclass(frozen=True)
class Statement:
    """Statements of one kind as one: that of the first rank, with the ranks of all.

    ``expected`` and ``seen`` are texts for a reader: ranks merged, floats as decimals. ``count`` is how many statements
    it stands for.
    """

    check: str
    expected: str
    seen: str
    where: tuple[str, ...]
    ranks: frozenset[int]
    checks: tuple[CheckResult, ...]

    @property
    def count(self) -> int:
        """The number of statements that were merged."""
        return len(self.checks)


def statements_of(checks: Iterable[CheckResult]) -> list[Statement]:
    """Return the statements that do not pass, merged; deciding ones first, in the order of time."""
    kinds: dict[tuple[str, ...], list[CheckResult]] = {}
    worse = (check for check in checks if check.verdict != "pass")
    for check in sorted(worse, key=lambda check: (check.order is None, check.order or 0)):
        kinds.setdefault((check.name, check.verdict, kind_of(check.expected), kind_of(check.seen)), []).append(check)
    return [_merged(same) for same in kinds.values()]


def causes_of(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements that follow from no other: the first, and those of evidence that no training explains.

    Such evidence is the faults made, the records, and the leftovers. Only statements that decide the verdict count.
    """
    deciding = [statement for statement in statements if statement.checks[0].order is not None]
    return [*deciding[:1], *(statement for statement in deciding[1:] if _stands_alone(statement))]


def _stands_alone(statement: Statement) -> bool:
    return statement.check in (HISTORY, INJECTION) or (statement.check == HYGIENE and not statement.ranks)


def kind_of(text: str) -> str:
    """Return the text without the parts that differ between ranks and nights.

    Those are ranks, numbers, paths, names of runs, UIDs and digests, and the stacks of ranks.
    """
    text = _ALIKE.sub("", _NEXT.sub("", apart(text)[0]))
    for pattern, mark in _MASKS:
        text = pattern.sub(mark, text)
    return text


def decimal(text: str) -> str:
    """Return the text with hex floats as decimals; a hex float behind its decimal is left out."""

    def shown(match: re.Match[str]) -> str:
        try:
            return repr(float.fromhex(match[0]))
        except (OverflowError, ValueError):
            return match[0]

    return _HEX.sub(shown, _DOUBLED.sub(r"\1", text))


def _merged(same: Sequence[CheckResult]) -> Statement:
    first = same[0]
    ranks = frozenset(rank for check in same for rank in _ranks_of(check))
    where = dict.fromkeys(place for check in same for place in check.where)
    texts: list[Callable[[CheckResult], str]] = [lambda check: check.expected, lambda check: check.seen]
    spoken = ranks if all(map(_is_of_its_ranks, same)) else frozenset(set().union(*map(_spoken_ranks, same)))
    expected, seen = (_text([text(check) for check in same], spoken) for text in texts)
    return Statement(first.name, expected, seen, tuple(where), ranks, tuple(same))


def _text(texts: Sequence[str], ranks: frozenset[int]) -> str:
    """Return the first text with all ranks; where the others say more than another rank, with their number."""
    first, *rest = (_ALIKE.sub("", text) if _span(text) is not None else text for text in texts)
    if len({first, *rest}) == 1 and len(ranks) < 2:
        return decimal(first)
    same = len({_RANK.sub("rank", text) for text in (first, *rest)}) == 1
    if not same or len(set(_OF_A_RANK.findall(first))) > 1:
        return decimal(f"{first} (and {len(rest)} alike)" if rest else first)

    def all_of_them(match: re.Match[str]) -> str:
        return named(ranks) if _PREPOSITION.search(first[: match.start()]) else f"each of {named(ranks)}"

    return decimal(_RANK.sub(all_of_them, first))


def _ranks_of(check: CheckResult) -> set[int]:
    """Return the ranks that the statement is about.

    A result of an earlier version, or another package's check, has them in its words alone.
    """
    return set(check.data.ranks) or _spoken_ranks(check)


def _is_of_its_ranks(check: CheckResult) -> bool:
    """Return whether the rank in a statement's words stands for the ranks of its data."""
    return len(check.data.ranks) == 1 or _ALIKE.search(check.seen) is not None


def _spoken_ranks(check: CheckResult) -> set[int]:
    """Return the rank that the statement or its first place names, and all ranks to which the statement also applies.

    Empty without a rank, or where it names several.
    """
    for text in (f"{check.expected}\n{check.seen}", *check.where[:1]):
        if ranks := {int(number) for number in _OF_A_RANK.findall(_ALIKE.sub("", text))}:
            # Only the words of a text with several ranks say which rank is its subject.
            return ranks | (_span(check.seen) or set()) if len(ranks) == 1 else set()
    return set()


def _span(text: str) -> set[int] | None:
    """Return the ranks in a check's text "the same of …"; None without such a text, or with too many ranks to list."""
    if (match := _ALIKE.search(text)) is None:
        return None
    ranks: set[int] = set()
    for part in match[1].split(","):
        first, _, last = part.partition("-")
        if not (first.isdigit() and (last or first).isdigit()):
            return None
        ranks.update(islice(range(int(first), int(last or first) + 1), _MOST_RANKS))
    return ranks
