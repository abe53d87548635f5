"""Changes the history of a finished run by hand: a defect of the record, or of the recorded facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from chaos.history.earlier_names import EARLIER_NAMES
from chaos.selftest.defect import Mutate, NothingToMutate

Record = dict[str, Any]
"""One event as it is written in its line."""


class Records:
    """The events of a run's history, or of its baseline's, open to change until :meth:`save`.

    A file's events keep their order; ``seq`` is given anew, so that only the intended change shows.
    """

    def __init__(self, run_dir: Path, *, baseline: bool = False) -> None:
        self._directory = run_dir / "baseline" / "history" if baseline else run_dir / "history"
        self.files: dict[str, list[Record]] = {}
        for path in sorted(self._directory.glob("*.jsonl")):
            lines = path.read_bytes().rstrip(b"\0").splitlines()
            self.files[path.name] = [json.loads(line) for line in lines]
        self._before = json.dumps(self.files)

    def all(self, event: str = "", /, **match: Any) -> list[Record]:
        """Return events of that name (of every name if it is empty) with these values, in order of time.

        These are the records themselves: a change to them changes the file. Raises NothingToMutate if there is none.
        """
        events = [
            record for file_records in self.files.values() for record in file_records if _matches(record, event, match)
        ]
        if not events:
            raise NothingToMutate(f"no {event or 'event'} with {match}")
        return sorted(events, key=lambda record: int(record["mono"]))

    def first(self, event: str, /, **match: Any) -> Record:
        """Return the earliest of them."""
        return self.all(event, **match)[0]

    def last(self, event: str, /, **match: Any) -> Record:
        """Return the latest of them."""
        return self.all(event, **match)[-1]

    def digest(self, rank: int, step: int, attempt: str = "train") -> Record:
        """Return the rank's last digest of a step."""
        return self.last("digest", rank=rank, step=step, attempt=attempt)

    def drop(self, unwanted: list[Record]) -> None:
        """Remove these events, as if they had never been recorded."""
        gone = {id(record) for record in unwanted}
        for name, file_records in self.files.items():
            self.files[name] = [record for record in file_records if id(record) not in gone]

    def drop_file(self, pattern: str) -> None:
        """Remove the files whose names begin so. Raises NothingToMutate if there is none."""
        names = [name for name in self.files if name.startswith(pattern)]
        if not names:
            raise NothingToMutate(f"no history file {pattern}*")
        for name in names:
            del self.files[name]

    def insert(self, after: Record, **values: Any) -> Record:
        """Put a copy of an event with other values behind it, a microsecond later. Return the new event."""
        new = {**json.loads(json.dumps(after)), "mono": after["mono"] + 1000, "wall": after["wall"] + 1000, **values}
        for file_records in self.files.values():
            for index, record in enumerate(file_records):
                if record is after:
                    file_records.insert(index + 1, new)
                    return new
        raise NothingToMutate(f"{after['event']} is not of this history")

    def end(self, process: Record, **status: Any) -> None:
        """Give a process another end, by its ``rank.exit`` and by the launcher's record of it, where there is one."""
        collected = [
            record
            for records in self.files.values()
            for record in records
            if record["event"] == "child.exit" and _is_end_of(record, process)
        ]
        for record in (process, *collected):
            record.update(status)

    def delay(self, since: int, nanoseconds: int, *, files: str = "") -> None:
        """Delay all events recorded at or after ``since`` by this time; a negative time makes them earlier.

        Only events in files whose names begin with ``files`` move. Records that the machine was busy during the good
        run are removed: they would stand between moved and unmoved events, and would excuse the delay.
        """
        records = [record for file_records in self.files.values() for record in file_records]
        self.drop(
            [record for record in records if EARLIER_NAMES.get(record["event"], record["event"]) == "job.starved"]
        )
        for name, file_records in self.files.items():
            for record in file_records:
                if name.startswith(files) and record["mono"] >= since:
                    record["mono"] += nanoseconds
                    record["wall"] += nanoseconds

    def save(self, *, renumber: bool = True) -> None:
        """Write the files. Raises NothingToMutate if nothing is changed."""
        if json.dumps(self.files) == self._before:
            raise NothingToMutate("the history is as it was")
        for path in self._directory.glob("*.jsonl"):
            if path.name not in self.files:
                path.unlink()
        for name, file_records in self.files.items():
            numbered = (
                [{**record, "seq": number} for number, record in enumerate(file_records)] if renumber else file_records
            )
            text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in numbered)
            (self._directory / name).write_text(text, "utf-8")

    def __iter__(self) -> Iterator[Record]:
        return iter(self.all())


def _is_end_of(collected: Record, end: Record) -> bool:
    """Return whether the launcher's record is of the process whose end the harness recorded."""
    return (collected["child_rank"], collected["child_pid"]) == (end["rank"], end["pid"])


def _matches(record: Record, event: str, match: dict[str, Any]) -> bool:
    return (not event or record["event"] == event) and all(record.get(key) == value for key, value in match.items())


def recorded(change: Callable[[Records], object], *, renumber: bool = True, baseline: bool = False) -> Mutate:
    """Return a mutation that changes the history. Without ``renumber`` a removed line leaves a gap in ``seq``."""

    def mutate(run_dir: Path) -> None:
        records = Records(run_dir, baseline=baseline)
        change(records)
        records.save(renumber=renumber)

    return mutate


def chain(*mutations: Mutate) -> Mutate:
    """Return a mutation of several mutations, made in turn, which together are one defect."""

    def mutate(run_dir: Path) -> None:
        for mutation in mutations:
            mutation(run_dir)

    return mutate
