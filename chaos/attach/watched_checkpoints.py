"""Checkpoints of an attached job, as they appear in its working directories and in the named directory.

They are known by the names that MindSpore and MindFormers give, or by their content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.attach.event import JobEvent
from chaos.base.clock import Clock
from chaos.base.walking import MAX_LEVELS, TooDeep, Unseen, walk
from chaos.machine.running.directories import FileKey, key_of
from chaos.machine.running.running import JobProcess
from chaos.observe.checkpoints.by_content import find_by_content, is_finished
from chaos.observe.checkpoints.layout import CheckpointFile, find_checkpoints

_SCAN_SECONDS = 5.0
MAX_FILES = 20_000
"""The most files below a directory that is searched for checkpoints; more would take too long, again and again."""


@dataclass
class _Place:
    """A directory: its path as the job sees it, and the path by which it is reached now."""

    shown: Path
    reached: Path
    searched: bool = False
    given_up: bool = False
    reported: bool = False
    looked_into: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def files(self) -> dict[Path, tuple[FileKey, CheckpointFile]]:
        """Return the finished checkpoints in it, by their paths as the job sees them."""
        checkpoints = {}
        by_content = find_by_content(self.reached, unseen=None, finished=self._is_finished)
        for checkpoint in (*find_checkpoints(self.reached, unseen=None), *by_content):
            try:
                status = checkpoint.path.stat()
            except OSError:  # removed meanwhile
                continue
            if not checkpoint.temporary:
                checkpoints[self.shown / checkpoint.path.relative_to(self.reached)] = (
                    (status.st_dev, status.st_ino),
                    checkpoint,
                )
        return checkpoints

    def _is_finished(self, path: Path) -> bool:
        """Return whether it is a finished checkpoint by its content; each state of a file is looked into once."""
        try:
            status = path.lstat()
        except OSError:  # removed meanwhile
            return False
        state = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        if state not in self.looked_into:
            self.looked_into[state] = is_finished(path)
        return self.looked_into[state]


class WatchedCheckpoints:
    """Searches directories every few seconds. Checkpoints that the first search of a directory finds are not new."""

    def __init__(self, only: Path | None, clock: Clock) -> None:
        """Search ``only`` and nothing else, where it is given."""
        self._clock = clock
        self._scan_at = 0
        self._only = only is not None
        self._places: dict[FileKey, _Place] = {}
        self._known: set[Path] = set()
        if only is not None:
            self.search(only)

    def search(self, directory: Path) -> None:
        """Search a directory of this host too."""
        path = directory.resolve()
        self._search(path, path)

    def search_working_directories(self, ranks: Sequence[JobProcess]) -> None:
        """Search the working directories of ranks; in a container they are reached through one of its processes."""
        for process in () if self._only else ranks:
            if process.directories.cwd is not None:
                shown = Path(process.directories.cwd)
                inside = process.container is not None
                self._search(shown, Path(f"/proc/{process.pid}/root{shown}") if inside else shown)

    def _search(self, shown: Path, reached: Path) -> None:
        key = key_of(reached)
        if key is not None and not self._places.setdefault(key, _Place(shown, reached)).reached.is_dir():
            self._places[key].reached = reached  # the process through which the directory was reached has ended

    def look(self) -> Iterator[JobEvent]:
        """Yield the checkpoints that have appeared, when it is time to search again."""
        if self._clock.mono() < self._scan_at:
            return
        before = frozenset(self._known)
        known: set[FileKey] = set()
        appeared: dict[FileKey, tuple[Path, CheckpointFile]] = {}
        for place in self._places.values():
            if place.given_up:
                continue
            too_deep: list[OSError] = []
            if _too_many(place.reached, too_deep.append):
                place.given_up = True
                reported = {"directory": str(place.shown), "limit": MAX_FILES}
                yield JobEvent("checkpoints.not_searched", self._clock.wall(), None, None, reported)
                continue
            if not place.reported and any(isinstance(error, TooDeep) for error in too_deep):
                place.reported = True
                reported = {"directory": str(place.shown), "levels": MAX_LEVELS}
                yield JobEvent("checkpoints.not_searched", self._clock.wall(), None, None, reported)
            for path, (key, checkpoint) in place.files().items():
                if path in before:
                    known.add(key)
                elif place.searched:
                    appeared.setdefault(key, (path, checkpoint))
                self._known.add(path)
            place.searched = True
        self._scan_at = self._clock.mono() + int(_SCAN_SECONDS * 1e9)
        new = {path: checkpoint for key, (path, checkpoint) in appeared.items() if key not in known}
        for path, checkpoint in sorted(new.items(), key=_order):
            about = {"path": str(path), "kind": checkpoint.kind, **_steps(checkpoint)}
            yield JobEvent("checkpoint", self._clock.wall(), checkpoint.rank, None, about)


def _order(entry: tuple[Path, CheckpointFile]) -> tuple[int, int, Path]:
    """Order checkpoints by their steps: by name step 100 would come before step 95."""
    path, checkpoint = entry
    return checkpoint.epoch or 0, checkpoint.step_in_epoch or 0, path


def _steps(checkpoint: CheckpointFile) -> dict[str, int | None]:
    """Return the steps that the path tells; no name holds the one long epoch of a directory ``iteration_N``."""
    iteration = checkpoint.step is not None and checkpoint.directory_step is None
    named = (None, None) if iteration else (checkpoint.epoch, checkpoint.step_in_epoch)
    return {"epoch": named[0], "step_in_epoch": named[1], "step": checkpoint.step}


def _too_many(root: Path, unseen: Unseen) -> bool:
    count = 0
    for _, directories, files in walk(root, unseen):
        count += len(directories) + len(files)
        if count > MAX_FILES:
            return True
    return False
