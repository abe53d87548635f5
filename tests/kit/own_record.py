"""An agent's record that ends with its test: in a job it is open as long as its process, and nothing closes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.agent.record import Record


@contextmanager
def own_record(directory: Path, *, run: str, rank: int) -> Iterator[Record]:
    """Make a rank's record of the first launch there, and give both of its descriptors back afterwards."""
    record = Record(str(directory), run=run, attempt="train", rank=rank)
    try:
        yield record
    finally:
        record._map.close()
        os.close(record._file)
