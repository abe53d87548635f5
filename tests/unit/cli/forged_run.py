"""Records of a run as no harness makes them, proved by this user's key all the same.

What has no proof is refused as a whole, and the guards behind the proof would not be tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

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


def take_for_an_own_run(run: Path) -> None:
    """Let the run say that it has started its job itself."""
    described = read_run(run)
    del described[ADOPTED]
    write_json(run / RUN_FILE, seal_of(described["token"]).document(described))
