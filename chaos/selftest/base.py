"""Good runs to be spoilt: each is really made once, and kept as long as the code that made it is the same.

Good runs that need hosts or a cluster were recorded there (``recorded.py``).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from chaos.base.file_lock import FileLock
from chaos.base.wait import wait_for
from chaos.base.walking import walk
from chaos.checks.judge import judge
from chaos.run.made_with import code_key
from chaos.selftest.launcher import Launcher, RunFailed
from chaos.selftest.recorded import archive_of, unpack
from chaos.store.directory import write_json

SCENARIOS = Path(__file__).parent / "scenarios"

_PACKAGE = Path(__file__).parents[1]
_JUDGING = ("checks", "cli", "report", "selftest")
"""Rooms that do not affect how a run is made: the base is judged anew each time."""

_RUN, _MANIFEST = "run", "manifest.json"
_KEPT = 3
"""Runs of one scenario that the cache keeps, the newest, for several versions of the code side by side."""

_FOLDERS = ("live/torch", "live")
"""Directories of the scenarios whose names begin with theirs: bases of live defects, and of defects in checkpoints."""

_WAIT_SECONDS = 1800.0


def scenario_of(name: str) -> Path:
    """Return the file of scenario ``name`` among the good runs."""
    folder = next((folder for folder in _FOLDERS if name.startswith(f"{folder.replace('/', '-')}-")), ".")
    return SCENARIOS / folder / f"{name}.yaml"


def _texts(scenario: Path) -> str:
    """Return the scenario, and the scripts beside it: one of them may be its job's."""
    files = (scenario, *sorted(scenario.parent.glob("*.py")))
    return "".join(file.read_text("utf-8") for file in files)


class BaseUnusable(Exception):
    """There is no good run of this scenario to mutate. The text gives the reason."""


class BaseRuns:
    """The cache of good runs. It is the user's own directory, and an entry is locked while it is made or copied.

    Runs are made in ``making``, beside one another, so that runs of the same job share their baseline. It is in
    the cache, and its contents are removed with it.
    """

    def __init__(self, cache: Path, making: Path, launcher: Launcher, versions: Mapping[str, str]) -> None:
        self._cache = cache
        self._making = making
        self._launcher = launcher
        self._versions = dict(versions)

    def take(self, name: str, target: Path, *, cores: int, note: Callable[[str], None]) -> Path:
        """Copy the run of scenario ``name`` to ``target`` and return ``target``, making the run first if need be.

        A recorded run is taken as it is. A cache entry that differs, in any byte, from the run that was kept is
        thrown away and made again. Raises BaseUnusable when the run cannot be made, or is not green.
        """
        archive = archive_of(name)
        if archive.exists():
            unpack(archive, target)
            _refuse_bad(name, target, "; record it anew (docs/design/selftest.md in the repository)")
            return target
        scenario = scenario_of(name)
        key = code_key(_texts(scenario) + json.dumps(self._versions), _PACKAGE, without=_JUDGING)
        entry = self._cache / f"{name}-{key}"
        with _locked(self._cache / f"{name}-{key}.lock"):
            why = damage(entry) if entry.exists() else "it was never made"
            if why is not None:
                note(f"base {name}: making the run" + ("" if why == "it was never made" else f" again, since {why}"))
                self._make(scenario, entry, cores)
                self._forget_older(name, entry)
            shutil.copytree(entry / _RUN, target, symlinks=True)
        try:
            _refuse_bad(name, target)
        except BaseUnusable:
            shutil.rmtree(entry, ignore_errors=True)  # kept for nobody: the next call makes it again
            raise
        return target

    def _make(self, scenario: Path, entry: Path, cores: int) -> None:
        shutil.rmtree(entry, ignore_errors=True)
        try:
            ran = self._launcher.run(scenario, self._making, cores=cores)
        except RunFailed as error:
            raise BaseUnusable(f"base {scenario.stem} cannot be run: {error}") from error
        unfinished = Path(tempfile.mkdtemp(prefix=".new-", dir=self._making))
        try:
            shutil.copytree(ran.directory, unfinished / _RUN, symlinks=True)
            write_json(unfinished / _MANIFEST, manifest(unfinished / _RUN))
            unfinished.rename(entry)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def _forget_older(self, name: str, entry: Path) -> None:
        named = re.compile(rf"{re.escape(name)}-[0-9a-f]+")  # not those of a scenario whose name only begins so
        others = [
            path for path in self._cache.iterdir() if named.fullmatch(path.name) and path.is_dir() and path != entry
        ]
        others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for old in others[_KEPT - 1 :]:
            lock = FileLock.try_acquire(old.with_name(f"{old.name}.lock"))
            if lock is not None:  # nobody copies it
                with lock:
                    shutil.rmtree(old, ignore_errors=True)


def _refuse_bad(name: str, run: Path, advice: str = "") -> None:
    """Raise BaseUnusable, with ``advice`` behind the reason, unless the run is green."""
    judgement = judge(run)
    if judgement.verdict != "pass":
        worst = next(finding for finding in judgement.findings if finding.verdict == judgement.verdict)
        reason = f"{worst.check}: {worst.expected} | {worst.seen}"
        raise BaseUnusable(f"the run of base {name} is {judgement.verdict}, not good: {reason}{advice}")


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the user's own cache, ``$XDG_CACHE_HOME/chaos/selftest``, made with rights for nobody else.

    Raises BaseUnusable when it belongs to somebody else, is a link, or others may write there.
    """
    home = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "/tmp"), ".cache"))
    path = Path(home, "chaos", "selftest")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise BaseUnusable(f"no cache of good runs can be made in {path}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise BaseUnusable(f"{path} is not a directory of this user alone: remove it, or set XDG_CACHE_HOME")
    return path


def manifest(run_dir: Path) -> dict[str, list[object]]:
    """Return size and digest of every file of a run by its path, and the error of every unreadable directory."""
    entries: dict[str, list[object]] = {}
    unseen: list[OSError] = []
    for directory, subdirectories, files in walk(run_dir, unseen.append):
        subdirectories.sort()
        for name in sorted(files):
            path = Path(directory, name)
            if path.is_symlink() or not path.is_file():
                entries[path.relative_to(run_dir).as_posix()] = [-1, "not a plain file"]
                continue
            entries[path.relative_to(run_dir).as_posix()] = [path.stat().st_size, _digest(path)]
    for error in unseen:
        entries[Path(error.filename).relative_to(run_dir).as_posix()] = [-1, str(error.strerror)]
    return entries


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def damage(entry: Path) -> str | None:
    """Return how a cache entry differs from the run that was kept; None if it does not."""
    try:
        kept = json.loads((entry / _MANIFEST).read_bytes())
    except (OSError, ValueError):
        return "the kept one has no list of its files"
    there = manifest(entry / _RUN)
    if not there or not isinstance(kept, dict):
        return "the kept one is empty"
    wrong = sorted(name for name in {*kept, *there} if kept.get(name) != there.get(name))
    return f"the kept one is damaged: {wrong[0]}" if wrong else None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an entry; another selftest may be making the same one meanwhile."""
    detail = "another selftest makes it"
    with wait_for(f"lock of {path.stem}", lambda: FileLock.try_acquire(path), seconds=_WAIT_SECONDS, detail=detail):
        yield
