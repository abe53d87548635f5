"""Part of check ``checkpoint``: what a save that was broken off has left, and that nobody took it for a checkpoint."""

from __future__ import annotations

from pathlib import PurePosixPath

from chaos.checks.artifacts import Artifacts
from chaos.checks.collect import Collector
from chaos.history.reader import History

EXPECTED = "what a broken-off save leaves is not taken for a checkpoint"


def judge_unfinished(history: History, artifacts: Artifacts, found: Collector) -> None:
    """Say which directories and files were never finished, and judge that no rank has loaded any of them.

    Says nothing where all saves were finished.
    """
    left = [*artifacts.temporary_directories, *(file.path for file in artifacts.checkpoints if file.temporary)]
    places = [artifacts.relative(path) for path in left]
    for load in history.select("load.begin"):
        path = PurePosixPath(str(load.data.get("path")))
        if any(part.endswith("_tmp") for part in path.parts) or path.suffix == ".tmp":
            seen = f"rank {load.rank} loads {artifacts.recorded(str(path))}"
            found.fail(EXPECTED, seen, load.source, *places)
    if places:
        found.settle(EXPECTED, f"unfinished and loaded by nobody: {', '.join(places)}", *places)
