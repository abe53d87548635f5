"""A result in a few lines: the headline and its causes, what follows from them as a number, the verdict, the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from chaos.base.rank_sets import named
from chaos.evidence.first_errors import FirstError
from chaos.evidence.text import readable
from chaos.observe.stack_words import apart, first_stack
from chaos.report.causes import Statement, causes_of, decimal, statements_of
from chaos.report.element import element_of
from chaos.report.result import Result

PAGE = "report.html"
"""The page of a run; not every run has one."""

MOST_LINES = 10
_MOST_PLACES = 3
_MOST_CAUSES = 3


def short_lines(result: Result, directory: Path, *, scenario: str | None = None) -> list[str]:
    """Return a result that does not pass in at most :data:`MOST_LINES` lines; none is cut off.

    ``scenario`` is the file to name for lines of the scenario, of which the run holds a copy; None for its name in the
    plan.
    """
    statements = statements_of(result.checks)
    causes = causes_of(statements) or statements[:1]
    lines, most = [headline_text(result)], _MOST_CAUSES
    if causes:
        lines += _cause(causes[0], scenario or source_of(result))
        most -= causes[0].checks[0].data.element is not None  # a line of its own
        lines += [f"  also      {cause.check}: {_both(cause)}" for cause in causes[1:most]]
    if (error := _error_of(result.first_errors, causes)) is not None:
        who = "" if error.rank is None else f"rank {error.rank}, "
        lines.append(f"  log       {who}{error.file}:{error.line}: {error.text}")
    shown = sum(cause.count for cause in causes[:most])
    if rest := sum(statement.count for statement in statements) - shown:
        lines.append(_rest(rest, len(causes) > most, directory))
    verdict, place = last_lines(result, directory)
    if statements:
        verdict = f"{name_of(result)}: {result.verdict}: {_short_reason(result, statements)}"
    return [_one_line(line) for line in (*lines, verdict, place)]


def headline_text(result: Result) -> str:
    """Return the headline; for a result of an earlier version, which has none, its reason."""
    return result.headline.text if result.headline is not None else decimal(result.reason) or "nothing was checked"


def last_lines(result: Result, directory: Path) -> list[str]:
    """Return the last two lines of an output without a headline: the verdict with its reason, and where to look."""
    reason = f": {decimal(result.reason)}" if result.reason else ""
    return [_one_line(f"{name_of(result)}: {result.verdict}{reason}"), _one_line(f"see {_place(directory)}")]


def _short_reason(result: Result, statements: Sequence[Statement]) -> str:
    """Return the reason without the words of the headline: the check, what it is about, and the checks that follow."""
    if result.reason.startswith("interrupted"):
        return "interrupted"
    deciding = [statement for statement in statements if statement.checks[0].order is not None]
    first, *rest = deciding or statements
    checks = dict.fromkeys(other.check for other in rest if other.check != first.check)
    then = f"; then {', '.join(checks)}" if checks else ""
    about = ", ".join(_about(first))
    return f"{first.check}{f': {about}' if about else ''}{then}"


def _about(statement: Statement) -> Iterator[str]:
    """Yield the subjects of a statement, by its data."""
    data = statement.checks[0].data
    if statement.ranks:
        yield named(statement.ranks)
    if data.nodes:
        yield f"node {', '.join(map(str, data.nodes))}"
    steps = [check.data.step for check in statement.checks if check.data.step is not None]
    if steps:
        yield f"step {min(steps)}"
    for word, value in (("phase", data.phase), ("fault", data.fault), ("mechanism", data.mechanism)):
        if value is not None:
            yield f"{word} {value}"
    if data.file is not None:
        yield data.file


def name_of(result: Result) -> str:
    """Return the scenario's name, with the cell in brackets where there is one."""
    return f"{result.scenario}[{result.cell}]" if result.cell else result.scenario


def source_of(result: Result) -> str:
    """Return the name of the scenario's file, as the plan has it."""
    source = result.plan.get("source")
    return source if isinstance(source, str) and source else "scenario.yaml"


def places_of(where: Sequence[str], scenario: str) -> list[str]:
    """Return the places, with the scenario's own name.

    A key that the scenario lacks has line 1 as its place, so line 1 is left out beside any other place.
    """
    places = [place for place in where if place != "scenario.yaml:1"] or where
    return [_in_scenario(place, scenario) for place in places]


def shown_path(directory: Path) -> str:
    """Return the path of a directory, relative where it lies below the working directory."""
    try:
        here = Path.cwd()
        absolute = directory if directory.is_absolute() else here / directory
        return str(PurePath(absolute).relative_to(here))
    except (OSError, ValueError):
        return str(directory)


def _in_scenario(place: str, scenario: str) -> str:
    name, colon, line = place.partition(":")
    return f"{scenario}{colon}{line}" if name == "scenario.yaml" else place


def _place(directory: Path) -> str:
    page = directory / PAGE
    return shown_path(page if page.is_file() else directory)


def _cause(cause: Statement, scenario: str) -> list[str]:
    seen, stacks = apart(cause.seen)
    lines = [f"  expected  {cause.expected}", f"  seen      {seen}", *(f"  stack     {stack}" for stack in stacks)]
    if (data := cause.checks[0].data).element is not None:
        lines.append(f"  element   {element_of(data)}")
    if places := places_of(cause.where, scenario):
        more = f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        lines.append(f"  where     {', '.join(places[:_MOST_PLACES])}{more}")
    return lines


def _both(cause: Statement) -> str:
    return f"{first_stack(cause.seen)} (expected: {cause.expected})"


def _error_of(errors: Sequence[FirstError], causes: Sequence[Statement]) -> FirstError | None:
    """Return the first error of a rank of the causes, else the first of all."""
    ranks = {rank for cause in causes for rank in cause.ranks}
    return next((error for error in errors if error.rank in ranks), next(iter(errors), None))


def _rest(count: int, stand_alone: bool, directory: Path) -> str:
    """Return how many statements are left out. ``stand_alone``: some of them follow from no other."""
    what = f"{count:,} statement" if count == 1 else f"{count:,} statements"
    follow = "follows" if count == 1 else "follow"
    beside = " or stand beside it" if stand_alone else ""
    return f"{what} {follow} from this{beside} (chaos analyze {shown_path(directory)} --all)"


def _one_line(text: str) -> str:
    lead = len(text) - len(text.lstrip(" "))
    return " " * lead + readable(text[lead:].replace("\n", " ").replace("\t", " "))
