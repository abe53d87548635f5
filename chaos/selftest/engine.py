"""Puts each defect of a catalogue into a run and gathers the statements of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from chaos.selftest.base import BaseUnusable
from chaos.selftest.defect import FILES, Defect, Row
from chaos.selftest.mutant import judge_mutant


class Watcher(Protocol):
    """Receives reports of the progress, from any thread."""

    def note(self, text: str) -> None:
        """Report a message for a watcher."""

    def row(self, row: Row) -> None:
        """Report a defect that is done."""


TakeBase = Callable[[str, Path], Path]
"""Copies the good run of a scenario to a path and returns the path. Raises BaseUnusable."""

RunLive = Callable[[Defect, Path], Row]
"""Runs a scenario with a defect in its processes, in a directory of its own."""

_Rest = Callable[[], Iterator[Row]]
"""The rest of the work for the main thread once a run exists."""


@dataclass(frozen=True)
class Engine:
    """The means of a selftest. ``jobs`` runs go on at the same time, while finished ones are spoilt and judged.

    ``place`` holds everything that is made; with ``keep`` the spoilt runs stay there. ``clock`` is in seconds and only
    measures. ``stop`` ends every active run. ``on_base`` is called with every good run before it is spoilt.
    """

    take_base: TakeBase
    run_live: RunLive
    stop: Callable[[], None]
    place: Path
    jobs: int
    clock: Callable[[], float]
    watcher: Watcher
    on_base: Callable[[str, Path], None]
    keep: bool = False

    def run(self, defects: Sequence[Defect]) -> list[Row]:
        """Return a row for each defect, in their order.

        An early end by any exception, Ctrl-C included, first ends the active runs.
        """
        rows: dict[str, Row] = {}
        bases = dict.fromkeys(defect.base for defect in defects if defect.layer == FILES)
        defects_by_base = {
            name: [defect for defect in defects if (defect.layer, defect.base) == (FILES, name)] for name in bases
        }
        pool = ThreadPoolExecutor(self.jobs)
        try:
            waiting: set[Future[_Rest]] = {pool.submit(self._take, name, defects_by_base[name]) for name in bases}
            waiting |= {pool.submit(self._live, defect) for defect in defects if defect.layer != FILES}
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    for row in future.result()():
                        rows[row.defect.name] = row
                        self.watcher.row(row)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self.stop()
            raise
        finally:
            pool.shutdown(wait=True)
        return [rows[defect.name] for defect in defects]

    def _live(self, defect: Defect) -> _Rest:
        row = self.run_live(defect, self.place)
        return lambda: iter([row])

    def _take(self, name: str, defects: Sequence[Defect]) -> _Rest:
        try:
            base = self.take_base(name, self.place / "bases" / name)
        except BaseUnusable as error:
            self.watcher.note(str(error))
            unusable = [Row(defect, "not run", 0.0, str(error)) for defect in defects]
            return lambda: iter(unusable)
        return partial(self._mutate, name, base, defects)

    def _mutate(self, name: str, base: Path, defects: Sequence[Defect]) -> Iterator[Row]:
        self.on_base(name, base)
        for defect in defects:
            yield judge_mutant(defect, base, self.place / "spoilt", self.clock, keep=self.keep)
