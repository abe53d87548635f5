"""The judgement of the gate in sentences, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from chaos.trends.findable import Findable
from chaos.trends.gate import FINDING, Flaky, GateResult, OnlyRun, Slower, TooFew, Worse
from chaos.trends.slowdown import CONFIDENCE


def sentences(result: GateResult, smallest: Sequence[Findable] = ()) -> Iterator[str]:
    """Yield a sentence for each finding, for what could not be compared, and one for the whole.

    ``smallest`` are the smallest slowdowns that could have been found.
    """
    yield from (_slower(slower) for slower in result.slower)
    yield from (_worse(worse) for worse in result.worse)
    yield from (_flaky(flaky) for flaky in result.flaky)
    yield from (_only_run(run) for run in result.only_runs)
    yield from _too_few(result)
    if result.interrupted:
        yield f"left out, interrupted: {result.interrupted} run{'s' if result.interrupted > 1 else ''}"
    if result.stale:
        yield f"left out, not run for a week: {', '.join(result.stale)}"
    yield from _smallest(result, [entry for entry in smallest if entry.share is not None])
    yield _whole(result)


def _smallest(result: GateResult, known: Sequence[Findable]) -> Iterator[str]:
    if known:
        first, last = known[0], known[-1]
        to = "" if first.key == last.key else f" to {last.share:.0%} ({last.name}: {last.phase})"
        yield (
            f"the smallest slowdown that could have been found, in all of the newest {result.rules.newest} runs: "
            f"{first.share:.0%} ({first.name}: {first.phase}){to}"
        )


def _slower(slower: Slower) -> str:
    before, now = slower.medians
    old, new = slower.samples
    beyond = f" by more than {slower.max_slower:.0%}" if slower.max_slower else ""
    return (
        f"{slower.name}: {slower.phase} got slower{beyond}: {slower.share:+.1%} ({slower.seconds:+.2f} s), more than "
        f"{slower.bound:.1%} with {CONFIDENCE:.0%} confidence; median {before:.2f} s of {old} runs before, "
        f"{now:.2f} s of the newest {new}; one-sided Mann-Whitney test, p = {slower.p:.1e} (limit {slower.limit:.1e} "
        f"for {slower.tests} phases compared); {changed(slower.changes)}"
    )


def _worse(worse: Worse) -> str:
    why = f": {worse.headline}" if worse.headline else ""
    usual = "nothing but its known finding" if worse.usual == FINDING else worse.usual
    return (
        f"{worse.name}: the verdict got worse: {worse.verdict} in {worse.run}, {usual} in {worse.runs} of the "
        f"runs before{why}; {changed(worse.changes)}"
    )


def _only_run(only: OnlyRun) -> str:
    why = f": {only.headline}" if only.headline else ""
    return f"{only.name}: {only.verdict} in its only run, {only.run}, with nothing to compare it with{why}"


def _flaky(flaky: Flaky) -> str:
    return (
        f"{flaky.name}: flaky: {flaky.passed} passed and {flaky.failed} failed of the newest runs, all on one version; "
        f"the last that failed is {flaky.last_failed}" + (f": {flaky.headline}" if flaky.headline else "")
    )


def _too_few(result: GateResult) -> Iterator[str]:
    """Yield a sentence for each cell that lacks samples; its phases share it."""
    cells: dict[str, list[TooFew]] = {}
    for entry in result.too_few:
        cells.setdefault(entry.name, []).append(entry)
    for name, entries in cells.items():
        if gone := [entry.phase for entry in entries if not entry.newest]:
            yield f"{name}: not measured in the newest passing runs: {', '.join(gone)}"
        if entries := [entry for entry in entries if entry.newest]:
            fewest = min(entries, key=lambda entry: entry.comparable)
            runs = fewest.newest + fewest.before
            alike = fewest.comparable == runs or not fewest.before
            like = "" if alike else f", {fewest.comparable} of them on like hosts with a like load"
            phases = ", ".join(entry.phase for entry in entries)
            yield f"{name}: too few samples: {count(runs, 'passing run')}{like}, {fewest.needed} are needed ({phases})"


def _whole(result: GateResult) -> str:
    rules = result.rules
    if not result.cells:
        return "unknown: there are no runs to compare"
    compared = (
        f"{count(result.tests, 'phase')} of {count(result.cells, 'cell')}: the newest {rules.newest} runs against up "
        f"to {rules.against} before them"
    )
    faults = len(result.slower) + len(result.worse) + len(result.flaky)
    findings = (
        f"{count(faults, 'finding')} in " if faults else "nothing got worse in " if result.verdict == "pass" else ""
    )
    return f"{result.verdict}: {findings}{compared}"


def count(number: int, noun: str) -> str:
    """Return a count in words: ``1 run``, ``17 runs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def changed(changes: Mapping[str, tuple[str, str]]) -> str:
    """Return what else changed, in words."""
    if not changes:
        return "no version changed"
    pairs = (f"{name} {before or 'unknown'} → {after or 'unknown'}" for name, (before, after) in changes.items())
    return f"changed with it: {', '.join(pairs)}"
