"""Lines about a run for a watcher. An action that very many ranks share gets a single line for all of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import localtime, monotonic, strftime
from typing import TYPE_CHECKING

from chaos.base.growth import FEW
from chaos.base.rank_sets import named, rank_set
from chaos.evidence.text import readable

if TYPE_CHECKING:
    from chaos.history.event import Event

_SECOND = 1_000_000_000
_HELD_SECONDS = 1.0


@dataclass(frozen=True)
class Deed:
    """An action of a rank: ``singular`` behind the rank's name, ``plural`` behind the names of several ranks."""

    attempt: str | None
    singular: str
    plural: str

    def of(self, ranks: Iterable[int]) -> str:
        """Return the line about these ranks."""
        numbers = set(ranks)
        return f"{self.attempt}: {rank_set(numbers)} {self.singular if len(numbers) == 1 else self.plural}"


def deed_of(event: Event) -> Deed | None:
    """Return the event's action of its rank, where that matters to a watcher."""
    data, attempt = event.data, event.attempt
    match event.event:
        case "train.begin":
            since = f"to train after step {data.get('initial_step')}"
            return Deed(attempt, f"begins {since}", f"begin {since}")
        case "checkpoint.end" if data.get("kind") == "end-of-life":
            step = f"of step {data.get('step')}"
            return Deed(
                attempt,
                f"has saved its end-of-life checkpoint {step}",
                f"have saved their end-of-life checkpoints {step}",
            )
        case "rank.exit":
            how = f"signal {data['signal']}" if data.get("signal") is not None else f"code {data.get('code')}"
            return Deed(attempt, f"ended with {how}", f"ended with {how}")
    return None


def headline(event: Event) -> str | None:
    """Return one line about an event that matters to a watcher, None for the others (steps, digests, …)."""
    data = event.data
    if event.rank is not None and (deed := deed_of(event)) is not None:
        return deed.of([event.rank])
    match event.event:
        case "run.start":
            seed = f", seed {data['seed']}" if "seed" in data else ""
            return f"run {data.get('run')}{seed}"
        case "attempt.start":
            return f"{event.attempt}: started"
        case "attempt.end":
            return f"{event.attempt}: ended"
        case "baseline.awaited":
            return f"another process makes the fault-free run of this job: {_maker(data.get('maker'))}"
        case "wait.begin":
            return f"{event.attempt}: waits until {data.get('goal')}, {_limit(data.get('seconds'))}"
        case "fault.armed":
            return f"fault {data.get('fault')}: armed for {_ranks(data.get('ranks'))}"
        case "fault.landed":
            place = f" at step {data['step']}, {data.get('phase')}" if data.get("step") is not None else ""
            return f"fault {data.get('fault')}: landed on {_ranks(data.get('ranks'))}{place}"
        case "fault.missed":
            return f"fault {data.get('fault')}: missed, {data.get('reason')}"
        case "fault.healed":
            return f"fault {data.get('fault')}: undone, {data.get('how')}"
        case "deadline.expired":
            limit = data.get("limit", f"{data.get('seconds')} s")
            return f"deadline {data.get('name')} of {limit} has passed: {data.get('detail')}"
        case "stacks.taken":
            from chaos.observe.stack_words import (  # at a deadline: the job starts sooner without
                MARK,
                in_words,
                stacks_of,
            )

            return f"{event.attempt}: stacks: {in_words(*stacks_of(data)).removeprefix(MARK)}"
        case "hook.begin":
            which = f"hook {data.get('stage')} {data.get('number')}"
            return f"{which}: runs {_command(data.get('command'))}, {_limit(data.get('limit'))}"
        case "check.begin":
            return f"check {data.get('check')}: runs"
        case "run.end":
            return f"run ended{': ' + str(data['error']) if data.get('error') else ''}"
    return None


class Headlines:
    """Shows the headlines of a run in order, with the seconds since the first event."""

    def __init__(self, tell: Callable[[str], None], now: Callable[[], float] = monotonic) -> None:
        self._tell = tell
        self._now = now
        self._first: int | None = None
        self._ranks: set[int] = set()
        self._alike: dict[Deed, set[int]] = {}
        self._since, self._mono = 0.0, 0

    def event(self, event: Event) -> None:
        """Show an event, if it matters; with many ranks not before others had a second to do the same.

        That is a second of the watcher's time: the events of one rank come together, whenever they happened.
        """
        self._first = event.mono if self._first is None else self._first
        if event.event == "rank.found" and event.rank is not None:
            self._ranks.add(event.rank)
        if self._alike and self._now() - self._since >= _HELD_SECONDS:
            self.flush()
        deed = deed_of(event)
        if deed is not None and event.rank is not None and len(self._ranks) > FEW:
            if not self._alike:
                self._since, self._mono = self._now(), event.mono
            self._alike.setdefault(deed, set()).add(event.rank)
        elif (text := headline(event)) is not None:
            self.flush()
            self._line(event.mono, text)

    def flush(self) -> None:
        """Show the events that are held back."""
        for deed, ranks in self._alike.items():
            self._line(self._mono, deed.of(ranks))
        self._alike.clear()

    def _line(self, mono: int, text: str) -> None:
        assert self._first is not None
        self._tell(f"{(mono - self._first) / _SECOND:6.1f} s  {text}")


def _maker(maker: object) -> str:
    match maker:
        case {"pid": pid, "user": user, "since": int(since) | float(since), "run": run}:
            at = f"process {pid} of {user}, since {strftime('%H:%M:%S', localtime(since))}"
            return f"{at}{f', run {run}' if run else ''}"
    return "it has left no record"


def _limit(value: object) -> str:
    return f"{value:g} s at most" if isinstance(value, (int, float)) else "without a limit"


def _command(value: object) -> str:
    """Return a command as a shell would take it, on one line."""
    words = value if isinstance(value, (list, tuple)) else [value]
    return readable(shlex.join(map(str, words)))


def _ranks(value: object) -> str:
    numbers = value if isinstance(value, (list, tuple)) else []
    return named(numbers) if numbers and all(isinstance(number, int) for number in numbers) else f"ranks {value}"
