"""The files of chaos itself: ``pytest --pyargs chaos`` collects none of them.

They are no tests of the user. Good runs of the selftest, the scenarios of the package and a module whose name ends like
that of a test would be collected otherwise. Without ``--pyargs`` a path is collected as any other.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import chaos

PACKAGE = Path(chaos.__file__).resolve().parent


def is_own_file(path: Path, config: pytest.Config) -> bool:
    """Return whether a path was found by the name of this package, and not given as a path."""
    return bool(config.getoption("pyargs")) and path.resolve().is_relative_to(PACKAGE)
