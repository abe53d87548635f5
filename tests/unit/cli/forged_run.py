"""Records of a run as no harness makes them, proved by this user's key all the same.

What has no proof is refused as a whole, and the guards behind the proof would not be tried.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos.history.ledger import Ledger
from chaos.store.directory import ADOPTED, LEDGER_FILE, RUN_FILE, read_run, write_json
from chaos.store.key import seal_of


def ledger_of(run: Path) -> Ledger:
    """The ledger of a run, to be written as a harness of this user writes it."""
    return Ledger(run / LEDGER_FILE, seal_of(read_run(run)["token"]))


def change_its_step(run: Path, change: Mapping[str, object]) -> None:
    """Change arguments of the one step that the run's ledger holds."""
    ledger = ledger_of(run)
    (step,) = ledger.read().steps
    (run / LEDGER_FILE).unlink()
    ledger.record(replace(step, arguments={**step.arguments, **change}))


@contextmanager
def with_its_step_changed(run: Path, change: Mapping[str, object]) -> Iterator[None]:
    """Change arguments of the step, and give the run its files back afterwards: to kill a harness takes seconds."""
    with TemporaryDirectory() as place:
        kept = shutil.copytree(run, Path(place) / run.name, symlinks=True)
        change_its_step(run, change)
        yield
        for path in run.iterdir():  # its directory stays: a run in another one is a copy, and nobody heals by that
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(kept, run, symlinks=True, dirs_exist_ok=True)


def take_for_an_own_run(run: Path) -> None:
    """Let the run say that it has started its job itself."""
    described = read_run(run)
    del described[ADOPTED]
    write_json(run / RUN_FILE, seal_of(described["token"]).document(described))
