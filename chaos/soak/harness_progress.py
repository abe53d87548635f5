"""The progress of a harness, by its records in a reports directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from chaos.history.event import Event
from chaos.history.ledger import Ledger, LedgerContent, UndoStep
from chaos.history.reader import read_history
from chaos.store.directory import LEDGER_FILE, RUN_FILE

_OPEN_SINCE = ("fault.landed", "fault.injecting", "fault.ending")
"""Events after which a fault is there, or is being made or ended: its undo steps are open. The surest come first."""
_HEALED = "fault.healed"


def _runs(place: Path) -> list[Path]:
    """Return the directories of runs. A hidden one is still being made: it may get its name at any moment."""
    return [path.parent for path in sorted(place.glob(f"[!.]*/{RUN_FILE}")) if not path.parent.is_symlink()]


def _events(place: Path) -> list[Event]:
    """Return the events of all of the harness's runs, in order."""
    events = [event for run in _runs(place) for event in read_history(run / "history").select(writer="harness")]
    return sorted(events, key=lambda event: event.mono)


def _histories(place: Path) -> list[bytes]:
    """Return the histories of the harness's runs, the baseline's first."""
    runs = sorted(_runs(place), key=lambda run: (run / RUN_FILE).stat().st_mtime_ns)
    files = [run / "history" / "harness.jsonl" for run in runs]
    return [file.read_bytes() for file in files if file.exists()]


def recorded_lines(place: Path) -> int:
    """Return the number of lines that the harness has recorded so far, over all runs in ``place``."""
    return sum(text.count(b"\n") for text in _histories(place))


def reached(place: Path) -> str:
    """Return the last recorded event, in words."""
    last = next(reversed(_events(place)), None)
    return "nothing" if last is None else f"{last.attempt or 'run'}: {last.event}"


def acts_of_faults(place: Path) -> dict[int, float]:
    """Return the lines after which a fault was there, was being made, or was being ended, over all runs in ``place``.

    It is the last line of each kind for each fault, with the seconds until the fault was undone, or the run ended.
    """
    events = _events(place)
    acts: dict[tuple[str, object], int] = {}
    healed: dict[object, int] = {}
    for number, event in enumerate(events):
        fault = event.data.get("fault")
        if event.event in _OPEN_SINCE:
            acts[event.event, fault] = number
        elif event.event == _HEALED:
            healed[fault] = event.mono
    surest_first = sorted(acts.items(), key=lambda act: (_OPEN_SINCE.index(act[0][0]), act[1]))
    return {
        number + 1: max(0, healed.get(fault, events[-1].mono) - events[number].mono) / 1e9
        for (_, fault), number in surest_first
    }


def kinds_of_undo(place: Path) -> list[str]:
    """Return the undo actions of all steps in the ledgers of its runs."""
    return _actions(place, lambda ledger: ledger.steps)


def open_undo(place: Path) -> list[str]:
    """Return the undo actions of the steps that are open now."""
    return _actions(place, lambda ledger: ledger.open)


def _actions(place: Path, of: Callable[[LedgerContent], Iterable[UndoStep]]) -> list[str]:
    return sorted({step.action for run in _runs(place) for step in of(Ledger(run / LEDGER_FILE).read())})
