"""The output that libraries would print by themselves: the harness gets each failure as well, and reports it once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep the records of libraries (a retry, a connection that was lost, a certificate) off standard error."""
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        logging.getLogger().removeHandler(silent)
