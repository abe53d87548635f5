"""Shared by all tests of the repository; a user's ``pytest scenarios/`` is not touched."""

import gc
import os
import resource
import sys
from pathlib import Path

import pytest

_OPEN_FILES = 4096
"""An agent's history file is open as long as its process, so a worker that runs thousands of tests keeps hundreds."""

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
if soft != resource.RLIM_INFINITY and soft < wanted:
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

# Tests start thousands of Python processes. Without bytecode each of them compiles all that it imports again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Take what was collected out of the garbage collector's sight: it stays to the end, and makes each round long."""
    gc.collect()
    gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without a test of processes where only those are asked for: it would take longer than they do."""
    if not config.getoption("markexpr").startswith("processes") or collection_path.suffix != ".py":
        return None
    return True if "pytest.mark.processes" not in collection_path.read_text() else None
