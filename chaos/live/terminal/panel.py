"""A run in a few lines: what it is, how far it is, its ranks, faults, recovery, loss, and what it waits for.

Whatever comes from a job is text. Nothing of it is read as markup, and none of its characters moves the cursor.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from chaos.base.rank_sets import rank_set
from chaos.evidence.text import readable
from chaos.live.state import BaselineMaker, CoresWait, FaultState, LiveState, LossState, RecoveryState, Waiting
from chaos.live.terminal.strip import legend, strip, subject
from chaos.live.words import clock

_LABEL = 8
"""Columns of the first word of a line."""
FEWEST = 3
"""Lines that are shown however small the terminal is."""
_MOST_FAULTS = 3
_TO_SPACES = str.maketrans("\n\t", "  ")


def lines(state: LiveState, height: int) -> list[Text]:
    """Return the lines for a terminal of this height, the most important ones where it is small."""
    return shortened(state, max(FEWEST, height - 2))


def shortened(state: LiveState, most: int) -> list[Text]:
    """Return so many lines at most, the most important ones."""
    every = [*_lines(state)]
    if len(every) > most:
        kept = sorted(sorted(range(len(every)), key=lambda number: every[number][0])[:most])
        every = [every[number] for number in kept]
    return [_fit(line) for _, line in every]


def _lines(state: LiveState) -> Iterator[tuple[int, Text]]:
    """Yield the lines from top to bottom, each with its place in the order of importance."""
    yield 0, _title(state)
    if state.ranks:
        yield 1, _labelled(subject(state), strip(state))
        yield 5, _labelled("", legend(state.states))
    for number, fault in enumerate(state.faults[:_MOST_FAULTS]):
        yield 3 if not number else 8, _labelled("" if number else "fault", _fault(fault))
    if len(state.faults) > _MOST_FAULTS:
        yield 9, _labelled("", Text(f"and {len(state.faults) - _MOST_FAULTS} more faults"))
    if state.recovery is not None:
        yield 2, _labelled("phase", _phase(state.recovery))
    if state.loss is not None:
        yield 4, _labelled("loss", _loss(state.loss))
    if state.waiting is not None:
        yield 2, _labelled("waits", _waiting(state.waiting))
    if state.baseline_maker is not None:
        yield 3, _labelled("made by", _maker(state.baseline_maker))
    if state.ends.planned or state.ends.unplanned:
        yield 6, _labelled("ends", _ends(state))
    for problem in state.problems[:1]:
        yield 7, _labelled("unread", Text(readable(problem), style="yellow"))


def status(state: LiveState) -> Text:
    """Return a run on one line: its clock and stage, its ranks, what goes on in it, its name, and what it waits for."""
    text = Text("" if state.elapsed is None else f"{clock(state.elapsed)} ")
    text.append(f"{_cell(state)} " if _cell(state) else "")
    text.append_text(Text.assemble(f"{state.stage_words} ", strip(state)))
    if state.steps is not None:
        text.append(f" step {state.step or 0} of {state.steps}")
    if state.recovery is not None and state.recovery.phase is not None:
        phase = state.recovery.phase
        text.append(f" {phase.name} {_seconds(phase.seconds)}{_of(phase.budget)}", style="red" if phase.over else "")
    if state.ends.unplanned:
        text.append(f" {state.ends.unplanned} unplanned", style="bold red")
    text.append(f" {readable(name_of(state))}", style="dim")
    if state.waiting is not None:
        text.append(f" {clock(state.waiting.left)} left: {state.waiting.goal}", style="dim")
    return _fit(text)


def cores_lines(wait: CoresWait, now: float) -> list[Text]:
    """Return how long a harness waits for a core, and who holds the cores."""
    left = "" if wait.limit is None else f"{clock(wait.limit - wait.elapsed)} left: "
    shown = [_labelled("waits", Text(f"{left}a core is free; process {wait.pid} has waited {clock(wait.elapsed)}"))]
    for holder in wait.holders:
        who = f"cores {holder.cores}: process {holder.pid} of {holder.user}, for {clock(now - holder.since)}"
        run = holder.run.rpartition("/")[2] or holder.command
        shown.append(_labelled("", Text(readable(f"{who}: {run}"))))
    return [_fit(line) for line in shown]


def name_of(state: LiveState) -> str:
    """Return the scenario with its cell."""
    return f"{state.scenario}[{state.cell}]" if state.cell else state.scenario or state.run


def _title(state: LiveState) -> Text:
    parts = Text(f"{_cell(state)}  " if _cell(state) else "", style="bold")
    elapsed = "" if state.elapsed is None else clock(state.elapsed)
    limit = "" if state.limit is None else f" of {clock(state.limit + 0.5)}"
    parts.append(f"{elapsed}{limit}  ", style="bold")
    parts.append(state.stage_words, style="bold")
    if state.steps is not None:
        parts.append(f"  step {state.step or 0} of {state.steps}")
    parts.append(f"  {readable(name_of(state))}")
    return parts


def _cell(state: LiveState) -> str:
    """Return the place of the cell in its call, where the call has several."""
    several = state.cell_number is not None and (state.cell_count or 0) > 1
    return f"cell {state.cell_number} of {state.cell_count}" if several else ""


def _labelled(label: str, text: Text) -> Text:
    return Text.assemble((f"{label:<{_LABEL}}", "dim"), text)


def _fault(fault: FaultState) -> Text:
    target = fault.role or (rank_set(fault.ranks) if fault.ranks else "the job")
    text = Text.assemble((fault.id, "bold"), f": {fault.kind}, {target}: ")
    match fault.state:
        case "planned" | "armed":
            text.append(f"{fault.state}, waits for {fault.waits_for}")
        case "landed" | "undone":
            place = f" at step {fault.step}, {fault.phase}" if fault.step is not None else ""
            text.append(f"{fault.state}{place if fault.state == 'landed' else ''}", style="red")
        case _:
            text.append(fault.state, style="bold red")
    if fault.elapsed is not None and fault.state not in ("planned", "armed"):
        text.append(f" {fault.elapsed:.0f} s ago" if fault.state != "acting" else f" for {fault.elapsed:.0f} s")
    if fault.text:
        text.append(f" ({fault.text})")
    return text


def _phase(recovery: RecoveryState) -> Text:
    number = f" {recovery.number} of {recovery.of}" if recovery.of > 1 else ""
    text = Text.assemble((f"{recovery.mechanism}{number}", "bold"), ": ")
    phase = recovery.phase
    if phase is not None:
        text.append(
            f"{phase.name} {_seconds(phase.seconds)}{_of(phase.budget)}", style="bold red" if phase.over else ""
        )
        text.append(", over its budget; " if phase.over else "; ")
    text.append("recovered in " if recovery.ended else "recovery ")
    text.append(f"{_seconds(recovery.elapsed)}{_of(recovery.budget)}", style="bold red" if recovery.over else "")
    if recovery.over:
        text.append(", over its budget")
    ended = [phase for phase in recovery.phases if phase.state == "ended"]
    if ended:
        text.append("; " + ", ".join(f"{phase.name} {_seconds(phase.seconds)}" for phase in ended), style="dim")
    return text


def _loss(loss: LossState) -> Text:
    text = Text(f"rank {loss.rank}, step {loss.step}{' by its log' if loss.by_log else ''}: {loss.loss:.6g}")
    if loss.baseline is not None and loss.difference is not None:
        same = loss.loss == loss.baseline
        text.append(f", fault-free {loss.baseline:.6g}, ")
        text.append("equal" if same else f"difference {loss.difference:+.3g}", style="" if same else "bold yellow")
    return text


def _waiting(waiting: Waiting) -> Text:
    text = Text(f"{clock(waiting.left)} left: {waiting.goal}")
    if waiting.missing:
        text.append(f"; {waiting.missing}", style="dim")
    return text


def _maker(maker: BaselineMaker) -> Text:
    run = f": {maker.run}" if maker.run else ""
    return Text(readable(f"process {maker.pid} of {maker.user}, for {clock(maker.elapsed)}{run}"))


def _ends(state: LiveState) -> Text:
    text = Text(f"{state.ends.planned} as planned, ")
    text.append(f"{state.ends.unplanned} unplanned", style="bold red" if state.ends.unplanned else "")
    bad = [rank for rank in state.ranks if rank.end is not None and rank.end.planned is False]
    if bad and bad[0].end is not None:
        text.append(f": {rank_set(rank.rank for rank in bad)}, {bad[0].end.how}")
    return text


def _seconds(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds:.1f} s" if seconds < 60 else clock(seconds)


def _of(budget: float | None) -> str:
    return "" if budget is None else f" of {budget:g} s" if budget < 60 else f" of {clock(budget)}"


def _fit(line: Text) -> Text:
    """Make a line of it, whatever names and reasons hold."""
    line.plain = line.plain.translate(_TO_SPACES)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line
