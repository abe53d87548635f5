"""A result on a terminal: the judgement, the failures and their places, and the duration of the recovery."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from chaos.evidence.finding import Verdict, worst
from chaos.evidence.pods import What
from chaos.report.element import element_of
from chaos.report.result import CheckResult, Result
from chaos.report.short import last_lines, name_of, short_lines, shown_path

STYLE: dict[Verdict, str] = {"pass": "green", "fail": "bold red", "unknown": "yellow"}

_FATES: dict[What, str] = {"restarted": "started again in place"}
_FATES |= {word: word for word in ("replaced", "ended", "untouched", "unknown")}


def print_short(result: Result, console: Console, directory: Path) -> None:
    """Print what a reader needs first: at most ten lines, or the times of a recovery that passed. Nothing is cut off.

    The last two lines are the verdict with its reason, and the path of the run in ``directory`` or of its page.
    """
    if result.verdict != "pass":
        *lines, verdict, place = short_lines(result, directory)
        console.print(Text(lines[0], "bold"), soft_wrap=True, highlight=False)
        for line in lines[1:]:
            console.print(Text(line), soft_wrap=True, highlight=False)
    else:
        _print_pass(result, console, directory)
        verdict, place = last_lines(result, directory)
    _print_last(result, console, verdict, place)


def print_all(result: Result, console: Console, directory: Path) -> None:
    """Print every statement of a result and every figure, and the last two lines of :func:`print_short`."""
    print_result(result, console)
    _print_last(result, console, *last_lines(result, directory))


def _print_pass(result: Result, console: Console, directory: Path) -> None:
    checks = len({check.name for check in result.checks})
    console.print(f"{len(result.checks)} statements of {checks} checks hold", highlight=False)
    if result.recovery.phases:
        console.print(_phases(result))
    if result.simulated:
        parts = ", ".join(f"{part.get('part')} ({part.get('layer')})" for part in result.simulated)
        console.print(Text(f"simulated: {parts}"), soft_wrap=True, highlight=False)
    if result.not_checked:
        names = ", ".join(dict.fromkeys(f"{left['name']}: {left['what']}" for left in result.not_checked))
        why = f"why: chaos analyze {shown_path(directory)} --all"
        console.print(Text(f"not checked: {names} ({why})"), soft_wrap=True, highlight=False)


def _print_last(result: Result, console: Console, verdict: str, place: str) -> None:
    lead = f"{name_of(result)}: "
    text = Text(verdict)
    text.stylize(STYLE[result.verdict], len(lead), len(lead) + len(result.verdict))
    console.print(text, soft_wrap=True, highlight=False)
    console.print(Text(place), soft_wrap=True, highlight=False)


def print_result(result: Result, console: Console) -> None:
    """Print a result: tables with colours on a terminal, aligned plain text elsewhere. Nothing is cut off."""
    _line(console, "", f"{name_of(result)}: ", result.verdict, f": {result.reason}" if result.reason else "")
    console.print(_checks(result), soft_wrap=False)
    for check in sorted((candidate for candidate in result.checks if candidate.verdict != "pass"), key=_when):
        _print_finding(check, console)
    _print_first_errors(result, console)
    if result.recovery.phases:
        console.print(_phases(result))
    for pod in result.pods:
        fate = f"recovery {pod.recovery} by {', '.join(pod.mechanisms)}: the pod of node {pod.node}: {_FATES[pod.what]}"
        console.print(f"{escape(fate)}: {escape(pod.why)}", soft_wrap=True, highlight=False)
    for exclusion in result.not_checked:
        console.print(
            f"not checked: {escape(exclusion['name'])}: {escape(exclusion['what'])} ({escape(exclusion['reason'])})",
            soft_wrap=True,
        )
    if result.agent.get("hooks_us") is not None:
        digests = result.agent.get("digests_us")
        apart = f", its digests {digests / 1000:.1f} ms" if digests is not None else ""
        console.print(f"agent: hooks {result.agent['hooks_us']:.1f} µs a step{apart} (median of the slowest rank)")
    for part in result.simulated:
        console.print(
            f"simulated: {escape(str(part.get('part')))} at: {escape(str(part.get('layer')))}", soft_wrap=True
        )


def _when(check: CheckResult) -> tuple[bool, int]:
    """Order the checks that decide the verdict by the time at which they broke, then the rest as judged."""
    return check.order is None, check.order or 0


def _line(console: Console, indent: str, text: str, verdict: Verdict, rest: str = "") -> None:
    console.print(Text(f"{indent}{text}").append(verdict, STYLE[verdict]).append(rest), soft_wrap=True)


def _table(console_box: box.Box | None = None) -> Table:
    return Table(box=console_box or box.SIMPLE, pad_edge=False, show_edge=False)


def _checks(result: Result) -> Table:
    table = _table()
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("statements", justify="right", no_wrap=True)
    table.add_column("worst", overflow="fold")
    for name, group in groupby(result.checks, key=lambda check: check.name):
        findings = list(group)
        verdict = worst([check.verdict for check in findings])
        decisive = next(check for check in findings if check.verdict == verdict)
        summary = "" if verdict == "pass" else escape(decisive.seen)
        table.add_row(escape(name), Text(verdict, STYLE[verdict]), str(len(findings)), summary)
    return table


def _print_finding(check: CheckResult, console: Console) -> None:
    # Later failures may follow from the first.
    _line(console, "", f"{'then ' if check.order else ''}{check.name}: ", check.verdict)
    console.print(f"  expected  {escape(check.expected)}", soft_wrap=True, highlight=False)
    console.print(f"  seen      {escape(check.seen)}", soft_wrap=True, highlight=False)
    if (element := element_of(check.data)) is not None:
        console.print(f"  element   {escape(element)}", soft_wrap=True, highlight=False)
    for place in check.where:
        console.print(f"  where     {escape(place)}", soft_wrap=True, highlight=False)


def _print_first_errors(result: Result, console: Console) -> None:
    """Print the logs' first errors, unless the run passed: a fault makes errors too, so no error is a finding."""
    if result.first_errors:
        console.print("first errors in the logs:")
    for error in result.first_errors:
        who = "" if error.rank is None else f"rank {error.rank}, "
        alike = f" ({error.alike} other log{'s' * (error.alike != 1)} alike)" if error.alike else ""
        text = f"  {who}{error.file}:{error.line}: {error.text}{alike}"
        console.print(escape(text), soft_wrap=True, highlight=False)


def _phases(result: Result) -> Table:
    budget = result.plan.get("budget") or {}
    budgets = budget.get("phases") or {}
    table = _table()
    table.add_column(f"recovery by {result.recovery.mechanism or 'no mechanism'}", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("budget", justify="right", no_wrap=True)
    for phase, seconds in result.recovery.phases.items():
        table.add_row(escape(phase), *_figures(seconds, budgets.get(phase)))
    table.add_row("total", *_figures(result.recovery.total, budget.get("total")))
    if result.recovery.rollback is not None or budget.get("rollback") is not None:
        table.add_row("steps trained again", *_figures(result.recovery.rollback, budget.get("rollback"), digits=0))
    return table


def _figures(value: float | None, budget: float | None, *, digits: int = 3) -> tuple[Text, str]:
    if value is None:
        return Text("unknown", STYLE["unknown"]), "" if budget is None else f"{budget:g}"
    over = budget is not None and value > budget
    return Text(f"{value:.{digits}f}", STYLE["fail"] if over else ""), "" if budget is None else f"{budget:g}"
