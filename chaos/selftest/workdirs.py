"""Directories in which a selftest makes its runs. They are healed before removal, also those of a killed selftest."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.base.file_lock import FileLock
from chaos.heal.heal import heal_all

LIVE = "live"
"""Subdirectory for runs with a defect in their processes; the good ones are in the directory itself."""

_MAKING, _OWNER = ".making-", ".owner"


@contextmanager
def place_to_make(cache: Path, note: Callable[[str], None]) -> Iterator[Path]:
    """Yield a directory in the cache in which runs are made, removed at the end.

    Directories that a killed selftest has left are healed and removed first. One with an active run, or that cannot be
    healed, stays with the record of how to undo it, and ``note`` receives a message about it.
    """
    for left in sorted(cache.glob(f"{_MAKING}*")):
        owner = _owned(left)
        if owner is not None:
            with owner:
                _put_back_and_remove(left, note)
    path = Path(tempfile.mkdtemp(prefix=_MAKING, dir=cache))
    owner = FileLock.try_acquire(path / _OWNER)
    assert owner is not None, f"{path} was made a moment ago"
    with owner:
        try:
            yield path
        finally:
            _put_back_and_remove(path, note)


def _put_back_and_remove(place: Path, note: Callable[[str], None]) -> None:
    for reports in (place, place / LIVE):
        for report in heal_all(reports):
            if not report.ok:
                why = "; ".join(report.failed or report.leftovers)
                note(f"left in place: {report.path}: {why} (chaos heal --reports {reports} puts it back)")
                return
    shutil.rmtree(place, ignore_errors=True)


def _owned(place: Path) -> FileLock | None:
    """Return the lock of a directory that nobody works in; None if it is in use, or unknown."""
    try:
        return FileLock.try_acquire(place / _OWNER)
    except OSError:
        return None
