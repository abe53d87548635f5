"""The files that a check may read beside plan and history: the run's directory, and the fault-free baseline."""

from __future__ import annotations

import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timezone
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from chaos.base.plain_files import open_plain
from chaos.base.walking import Unseen, entries_below, walk
from chaos.evidence.checkpoints.stored import without_counter
from chaos.history.reader import History
from chaos.observe.checkpoints.layout import DIGESTED, CheckpointFile, find_checkpoints, find_temporary_directories
from chaos.observe.checkpoints.registered import directory_marks, is_broken_off
from chaos.observe.checkpoints.saved_state import SavedState, read_saved_state
from chaos.observe.logs.device_log import DeviceLogReader
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.losses.loss_columns import LossColumns, LossScanner
from chaos.observe.logs.losses.mean_losses import MARKS, mean_losses
from chaos.observe.logs.losses.other_losses import read_losses
from chaos.observe.logs.mindspore_log import MindSporeLogReader
from chaos.observe.logs.reader import read_log
from chaos.observe.logs.registered import other_readers
from chaos.observe.logs.torch.torchrun_log import TorchrunLogReader
from chaos.observe.logs.traceback_calls import LoggedTraceback
from chaos.observe.logs.ttp.log import TtpLogReader

if TYPE_CHECKING:
    from chaos.evidence.checkpoints.owner import Owners
    from chaos.evidence.logged import Logged

_T = TypeVar("_T")
_BLOCK = 1 << 20
SDK_LOGS = ("ttp/ttp_log.log*", "ttp-node_*/ttp_log.log*")
"""The SDK's logs below an attempt's logs: of all ranks on one machine, or of the ranks of each node."""
LAUNCHER_LOG = "msrun.log"
"""The log of the launcher below an attempt's logs, whichever launcher it is."""
_WORKER_LOG = re.compile(r"worker_(?P<rank>[0-9]{1,9})(?:\.before-(?P<before>[0-9]{1,9}))?\.log")

SIGNS = ("is greater equal than threshold", "Resume training after TREError", "Set TFT replica with dp")
"""The text in every line that reports a rollback of an abnormal result, or a rank's replicas."""


class Artifacts:
    """Paths in ``run_dir``, and their content. Reading is cached; nothing is written or changed.

    ``steps_per_update`` is the plan's: it turns the optimizer's count in a file into a step. ``updates_left_out``: the
    job has left out updates, so that the count in a file gives no step.
    """

    def __init__(
        self,
        run_dir: Path,
        baseline: History | None,
        *,
        steps_per_update: int = 1,
        updates_left_out: bool = False,
    ) -> None:
        self.run_dir = run_dir
        self.baseline = baseline
        self.steps_per_update = steps_per_update
        self._updates_left_out = updates_left_out
        self.logged: Logged | None = None
        self.owners: tuple[History, Owners] | None = None
        self._scanner = LossScanner(others=(*SIGNS, *MARKS), times=False)
        self._signs: dict[tuple[str, int], list[LogEvent]] = {}
        self._states: dict[Path, SavedState] = {}
        self._logs: dict[str, list[LogEvent]] = {}
        self._sign_reader = MindSporeLogReader(timezone.utc)
        self._listed: dict[Path, dict[int, list[Path]]] = {}
        self._found: dict[object, tuple[Any, list[OSError]]] = {}
        self._unseen: list[OSError] = []
        self.tracebacks: dict[Path, LoggedTraceback | None] = {}

    @property
    def job_dir(self) -> Path:
        """The kept working directory of the job."""
        return self.run_dir / "job"

    def search(self, find: Callable[[Path, Unseen], _T]) -> _T:
        """Return the result of a search below the job's directory; each search is made once.

        The places that it could not read are kept for :meth:`take_unseen`, anew for every caller.
        """
        if find not in self._found:
            unseen: list[OSError] = []
            self._found[find] = (find(self.job_dir, unseen.append), unseen)
        result, unseen = self._found[find]
        self._unseen += unseen
        return cast("_T", result)

    def take_unseen(self) -> list[str]:
        """Return the places that searches since the last call could not read, in words: their content is unknown."""
        texts = dict.fromkeys(f"{self.relative(Path(str(error.filename)))}: {error.strerror}" for error in self._unseen)
        self._unseen = []
        return list(texts)

    @property
    def checkpoints(self) -> list[CheckpointFile]:
        """Every checkpoint file that the job left, by its name. Their owners: evidence.checkpoints.owner."""
        return self.search(find_checkpoints)

    @property
    def temporary_directories(self) -> list[Path]:
        """Directories of end-of-life checkpoints that were not renamed."""
        return self.search(find_temporary_directories)

    def read_checkpoint(self, path: Path) -> SavedState:
        """Return the content of a checkpoint file. Raises CheckpointError when it is not sound."""
        if path not in self._states:
            self._states[path] = self.numbered(read_saved_state(path))
        return self._states[path]

    def numbered(self, state: SavedState) -> SavedState:
        """Return a saved state with only those of its numbers that give a step."""
        return without_counter(state) if self._updates_left_out else state

    @property
    def read_states(self) -> Mapping[Path, SavedState]:
        """The content of the checkpoint files that the checks have read, in that order."""
        return self._states

    def relative(self, path: Path) -> str:
        """Return a path as findings quote it: from the run's directory, the same on every machine."""
        try:
            return path.relative_to(self.run_dir).as_posix()
        except ValueError:
            return path.name

    def recorded(self, path: str) -> str:
        """Return a recorded path as findings quote it: from the job's directory on, or its last parts."""
        parts = PurePosixPath(path).parts
        if not path.startswith("/"):
            return path
        if "job" in parts:
            return "/".join(parts[len(parts) - 1 - parts[::-1].index("job") :])
        return "/".join(("…", *parts[-3:]))

    def locate(self, recorded: str) -> Path | None:
        """Return the kept file of a path that a process recorded, or None.

        The run may have been copied, so an absolute path is matched by the part from the job's directory on; a
        relative one belongs to the job's directory. For a directory that is one checkpoint it is the file by which it
        is known.
        """
        parts = PurePosixPath(recorded).parts
        if ".." in parts:
            return None
        starts = [index + 1 for index, part in enumerate(parts) if part == "job"] if recorded.startswith("/") else [0]
        for start in reversed(starts):
            candidate = self.job_dir.joinpath(*parts[start:])
            marks = (candidate / mark for mark in directory_marks())  # of a directory that is one checkpoint
            for path in (candidate, *marks):
                for kept in (path, path.with_name(path.name + DIGESTED)):
                    if _is_plain_below(self.job_dir, kept):
                        return kept
        return None

    # A log's name on anything but a plain file, a link included, is an error for the reader: a log that
    # cannot be read is not an empty log.

    def sdk_events(self, attempt: str) -> list[LogEvent]:
        """Return the events in the SDK's log files of an attempt, file by file in the order of their lines.

        Their times are local without a zone. They are read as UTC here, so that the result is the same on every
        machine; chaos.evidence.clock corrects them.
        """
        if attempt not in self._logs:
            paths = sorted(path for pattern in SDK_LOGS for path in (self.run_dir / "logs" / attempt).glob(pattern))
            readers = [TtpLogReader(timezone.utc)]
            self._logs[attempt] = [
                event for path in paths for event in read_log(path, readers, name=self.relative(path))
            ]
        return self._logs[attempt]

    def worker_events(self, attempt: str, rank: int) -> list[LogEvent]:
        """Return the framework's and device's events in a rank's own logs, in the order of lines; none without a log.

        The log of a replaced process is beside the new one's (``worker_2.before-1.log``) and comes first. Times are
        read as UTC, like the SDK's.
        """
        key = f"{attempt}/worker_{rank}"
        if key not in self._logs:
            readers: list[LogReader] = [MindSporeLogReader(timezone.utc), DeviceLogReader(timezone.utc)]
            self._logs[key] = [
                event
                for path in self.worker_logs(attempt, rank)
                for event in read_log(path, readers, name=self.relative(path))
            ]
        return self._logs[key]

    def torchrun_events(self, attempt: str, node: int = 0) -> list[LogEvent]:
        """Return torchrun's own lines in the log of a node's launcher in an attempt.

        None without such a log, or of another launcher.
        """
        key = f"{attempt}/torchrun/{node}"
        if key not in self._logs:
            path = self.run_dir / "logs" / attempt / (LAUNCHER_LOG if node == 0 else f"msrun-node_{node}.log")
            known = os.path.lexists(path)
            readers = [TorchrunLogReader(timezone.utc)]
            self._logs[key] = list(read_log(path, readers, name=self.relative(path))) if known else []
        return self._logs[key]

    def worker_logs(self, attempt: str, rank: int) -> list[Path]:
        """Return a rank's existing logs, the logs of replaced processes first."""
        return self._worker_logs(self.run_dir / "logs" / attempt).get(rank, [])

    def losses(self, attempt: str, rank: int) -> list[tuple[str, LossColumns]]:
        """Return the losses in a rank's own logs, file by file. Not cached: a thousand ranks would fill the memory.

        Raises OSError for a log that cannot be read, and the errors of other packages' readers.
        """
        return [self._losses_of(path, rank, columns) for path, columns in self._scan(attempt, rank)]

    def baseline_losses(self, rank: int) -> list[tuple[str, LossColumns]]:
        """Return the losses in the logs of the fault-free run that were kept beside its history."""
        paths = self._worker_logs(self.run_dir / "baseline" / "logs" / "train").get(rank, [])
        return [self._losses_of(path, rank, self._scanner.scan(path)) for path in paths]

    def _losses_of(self, path: Path, rank: int, columns: LossColumns) -> tuple[str, LossColumns]:
        """Read losses by the forms of this package; where a log has none of them, by the readers of other packages."""
        if not len(columns.step):
            means = mean_losses(columns)
            if means is not None:
                columns = means
            elif self._other_readers:
                columns = read_losses(path, rank, self._other_readers)
        return self.relative(path), columns

    @cached_property
    def _other_readers(self) -> list[LogReader]:
        return other_readers(timezone.utc)

    def _scan(self, attempt: str, rank: int) -> list[tuple[Path, LossColumns]]:
        """Return the matches of this package's own forms in a rank's logs; keep its signs of a rollback."""
        scanned = [(path, self._scanner.scan(path)) for path in self.worker_logs(attempt, rank)]
        self._signs[attempt, rank] = [
            replace(event, file=self.relative(path), line=line)
            for path, columns in scanned
            for line, text in columns.others
            if any(sign in text for sign in SIGNS) and (event := self._sign_reader.read(text)) is not None
        ]
        return scanned

    def signs(self, attempt: str, rank: int) -> list[LogEvent]:
        """Return the lines of a rank's own logs that report a rollback of an abnormal result, or its replicas."""
        if (attempt, rank) not in self._signs:
            self._scan(attempt, rank)
        return self._signs[attempt, rank]

    def _worker_logs(self, directory: Path) -> dict[int, list[Path]]:
        """Return all ranks' logs in a directory: it is listed once, for a thousand ranks."""
        if directory not in self._listed:
            listed: dict[int, list[Path]] = defaultdict(list)
            for path in directory.iterdir() if directory.is_dir() else ():
                match = _WORKER_LOG.fullmatch(path.name)
                if match:
                    listed[int(match["rank"])].append(path)
            for paths in listed.values():
                paths.sort(key=_number_of)
            self._listed[directory] = dict(listed)
        return self._listed[directory]

    def log_contains(self, attempt: str, text: str, rank: int | None) -> bool:
        """Return whether a log of the attempt (of one rank's, where given) contains ``text``. Memory is bounded.

        The logs of a rank's earlier processes count too; their names have more between the rank and ``log``.
        """
        directory = self.run_dir / "logs" / attempt
        pattern = f"worker_{rank}.*log" if rank is not None else "*"
        needle = text.encode()
        logs = (path for path in entries_below(directory, self._unseen.append) if fnmatchcase(path.name, pattern))
        return any(_contains(path, needle) for path in logs if not _is_directory(path))

    def unfinished(self) -> list[Path]:
        """Return the files and directories under the job's directory whose names mark them as unfinished."""
        return self.search(_find_unfinished)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_plain_below(root: Path, path: Path) -> bool:
    """Return whether it is a plain file, and no link on the way to it leads out of ``root``."""
    try:
        return path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(root.resolve())
    except (OSError, ValueError, RuntimeError):  # too long a name, a NUL in it, a ring of links
        return False


def _number_of(path: Path) -> float:
    """Return the number of ``worker_2.before-1.log``; the log of the last process comes after all."""
    match = _WORKER_LOG.fullmatch(path.name)
    return float(match["before"]) if match and match["before"] else math.inf


def _contains(path: Path, needle: bytes) -> bool:
    with open_plain(path) as file:
        tail = b""
        while block := file.read(_BLOCK):
            if needle in tail + block:
                return True
            tail = block[-len(needle) :]
    return False


def _find_unfinished(root: Path, unseen: Unseen) -> list[Path]:
    return sorted(_unfinished(root, unseen))


def _unfinished(root: Path, unseen: Unseen) -> Iterator[Path]:
    for directory, subdirectories, files in walk(root, unseen):
        yield from (Path(directory, name) for name in subdirectories if name.endswith("_tmp"))
        yield from (Path(directory, name) for name in files if name.endswith((".tmp", ".partial")))
        if is_broken_off(files):
            yield Path(directory)
