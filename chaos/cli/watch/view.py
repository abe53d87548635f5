"""Shows a watched job: a live table on a terminal, plain lines anywhere else, or JSON lines."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from chaos.base.rank_sets import by_word, named, spans
from chaos.cli.watch.errors import FirstErrors
from chaos.evidence.text import readable
from chaos.machine.linux.children import ExitStatus

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.table import Table

    from chaos.attach.event import JobEvent
    from chaos.attach.watching import RankView, StepView, Watch

_SUMMARY_LOOKS = 10
"""Looks between two lines about steps and losses."""

_QUIET = frozenset(
    {"train.step", "train.loss", "train.progress", "train.epoch_time", "cluster.alive", "cluster.waiting"}
)
"""Log events that are too many for a line each; steps and losses are in the table and the summary."""

_ROWS = 32
_LONGEST = 160


class View(Protocol):
    """Shows events, one after the other."""

    def show(self, event: JobEvent) -> None:
        """Show an event."""

    def end_look(self) -> None:
        """Note that a look at the job is over."""


@contextmanager
def open_view(watch: Watch, stream: TextIO, *, as_json: bool) -> Iterator[View]:
    """Open the view that fits the stream."""
    if as_json:
        yield JsonView(stream)
    elif not stream.isatty():
        yield PlainView(watch, stream)
    else:
        from rich.console import Console
        from rich.live import Live

        table = TableView(watch)
        with Live(console=Console(file=stream), refresh_per_second=2, get_renderable=table.shown) as live:
            table.attach(live)
            yield table


def headline(event: JobEvent) -> str | None:
    """Return one line about an event, None for an event that gets none."""
    data, who = event.data, f"rank {event.rank}"
    match event.event:
        case "launcher.found":
            return f"{data.get('role')}: PID {event.pid}"
        case "rank.found":
            return f"{who}: PID {event.pid}"
        case "rank.restarted":
            return f"{who}: started again, PID {event.pid} in place of {data.get('instead_of')}"
        case "rank.stopped":
            return f"{who}: stopped (SIGSTOP)"
        case "rank.continued":
            return f"{who}: goes on"
        case "rank.exit":
            named = who if event.rank is not None else f"PID {event.pid}"
            return f"{named}: ended with {data.get('how') or _how(data)}"
        case "checkpoint":
            owner = who if event.rank is not None else "no rank in its name"
            step = f"step {data.get('step')}"
            if data.get("step") is None:
                step = f"epoch {data.get('epoch')}, step {data.get('step_in_epoch')} in it"
            return f"{owner}: checkpoint of {step}, {data.get('path')}"
        case "checkpoints.not_searched" if "levels" in data:
            return (
                f"{data.get('directory')} has directories nested too deeply: only {data['levels']} levels were "
                "searched for checkpoints; name another directory with --checkpoints"
            )
        case "checkpoints.not_searched":
            return (
                f"more than {data.get('limit')} files below {data.get('directory')}: not searched for checkpoints; "
                "name a smaller directory with --checkpoints"
            )
        case "ranks.gone":
            if data.get("launcher") is not None:
                return f"no rank is left; the launcher, PID {data['launcher']}, lives and may start them again"
            return f"no rank is left; the job has ended if none is started within {data.get('grace'):g} s"
        case "job.end":
            return f"the job has ended: no rank of it is left{_unknown(data.get('unknown_lines') or {})}"
        case "log" if data.get("kind") not in _QUIET and not event.before:
            about = [f"step {data['step']}"] if data.get("step") is not None else []
            about += [f"{name}={value}" for name, value in data.get("fields", {}).items()]
            nobody = str(data.get("file")) if event.pid is None else f"PID {event.pid}"
            place = who if event.rank is not None else nobody
            return f"{place}: {data.get('kind')} {' '.join(about)}".rstrip()
    return None


def finite(value: Any) -> Any:
    """Return a value that JSON can hold: infinity and NaN, which JSON lacks, become their texts."""
    if isinstance(value, dict):
        return {name: finite(field) for name, field in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class JsonView:
    """One JSON object a line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show(self, event: JobEvent) -> None:
        """Print it."""
        about = {
            "event": event.event,
            "wall_ns": event.wall_ns,
            "rank": event.rank,
            "pid": event.pid,
            "before": event.before,
        }
        print(json.dumps(about | finite(event.data)), file=self._stream, flush=True)

    def end_look(self) -> None:
        """Do nothing more."""


class PlainView:
    """A line for each event that matters, and now and then one about steps and losses."""

    def __init__(self, watch: Watch, stream: TextIO) -> None:
        self._watch = watch
        self._stream = stream
        self._looks = 0
        self._last = ""
        self._errors = FirstErrors()

    def show(self, event: JobEvent) -> None:
        """Print it if it matters."""
        if event.event == "job.end":
            self._summary()
            if (left := self._errors.left()) is not None:
                self._print(left)
        if self._errors.shows(event) and (text := headline(event)) is not None:
            self._print(text)

    def end_look(self) -> None:
        """Print how far the ranks have come, when they have."""
        if self._looks % _SUMMARY_LOOKS == 0:
            self._summary()
        self._looks += 1

    def _summary(self) -> None:
        words = {rank: _at(view) for rank, view in sorted(self._watch.ranks.items()) if view.step}
        if len(words) > _ROWS:
            parts = [f"{named(ranks)} {word}" for word, ranks in by_word(words).items()]
        else:
            parts = [f"rank {rank} {word}" for rank, word in words.items()]
        parts += [f"{_at(view)} (no rank named in {file})" for file, view in sorted(self._watch.shared.items())]
        text = ", ".join(parts[:_ROWS])
        if text and text != self._last:
            self._last = text
            self._print(f"steps: {text}")

    def _print(self, text: str) -> None:
        print(_line(text), file=self._stream, flush=True)


class TableView:
    """A row for each rank, and the latest events above it."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._began = time.monotonic()
        self._live: Live | None = None
        self._errors = FirstErrors()

    def attach(self, live: Live) -> None:
        """Show headlines above the table of this display."""
        self._live = live

    def show(self, event: JobEvent) -> None:
        """Print it above the table if it matters."""
        if event.event == "job.end" and (left := self._errors.left()) is not None:
            self._print(left)
        if self._errors.shows(event) and (text := headline(event)) is not None:
            self._print(text)

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._live.console.print(_line(text), markup=False, highlight=False)

    def end_look(self) -> None:
        """Do nothing: the table refreshes by itself."""

    def shown(self) -> Group:
        """Return the ranks as a strip of letters, and the table."""
        from rich.console import Group
        from rich.text import Text

        from chaos.live.terminal.strip import legend, letters
        from chaos.live.words import clock

        states = [_state(view) for _, view in sorted(self._watch.ranks.items())]
        counts = {state: states.count(state) for state in dict.fromkeys(states)}
        seconds = Text(f"{clock(time.monotonic() - self._began)}  ", style="bold")
        return Group(Text.assemble(seconds, letters(states)), legend(counts), self.table())

    def table(self) -> Table:
        """Return the table as it is now: a row for each rank, or for each state of very many ranks."""
        from rich.table import Table

        many = len(self._watch.ranks) > _ROWS
        columns = ("state", "step", "loss", "starts", "container")
        table = Table(*(("ranks",) if many else ("rank", "PID")), *columns, box=None)
        words_by_rank = {rank: _row(view) for rank, view in sorted(self._watch.ranks.items())}
        if many:
            rows = [(spans(ranks), *words) for words, ranks in by_word(words_by_rank).items()]
        else:
            rows = [
                (str(rank), str(self._watch.ranks[rank].process.pid), *words) for rank, words in words_by_rank.items()
            ]
        for row in rows[:_ROWS]:
            table.add_row(*row)
        for file, view in sorted(self._watch.shared.items()):
            words = (f"no rank named in {file}", view.step, view.loss, "", "")
            table.add_row(*([""] if many else ["", ""]), *map(readable, words))
        if len(rows) > _ROWS:
            table.add_row("…", f"{len(rows) - _ROWS} more rows")
        return table


def _state(view: RankView) -> str:
    """Return the state of an attached rank by the words of a run. There is no plan, so no failing end is planned."""
    if view.state == "stopped":
        return "stopped"
    if view.state == "running":
        return "training" if view.step else "starting"
    if view.state == f"ended, {ExitStatus()}":
        return "not recorded"
    return "ended" if view.state == f"ended, {ExitStatus(code=0)}" else "ended unplanned"


def _row(view: RankView) -> tuple[str, ...]:
    container = "" if view.process.container is None else str(view.process.container)
    return tuple(map(readable, (view.state, view.step, view.loss, str(view.starts), container)))


def _at(view: RankView | StepView) -> str:
    return f"at {view.step}{f' loss {view.loss}' if view.loss else ''}"


def _unknown(lines: dict[str, int]) -> str:
    """Return a text about the lines of the job's logs that the readers do not know."""
    if not lines:
        return ""
    most = max(lines, key=lambda name: lines[name])
    source = most if len(lines) == 1 else f"{len(lines)} logs, most in {most}"
    return f"; no reader knows {sum(lines.values())} lines of {source}: chaos logs FILE --unknown shows them"


def _how(data: dict[str, Any]) -> str:
    if data.get("signal") is not None:
        return f"signal {data['signal']}"
    return "an unknown status" if data.get("code") is None else f"exit code {data['code']}"


def _line(text: str) -> str:
    plain = " ".join(readable(text).split())
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
