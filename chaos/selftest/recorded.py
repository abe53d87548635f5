"""Good runs that need hosts or a cluster: made there, and kept in the package as they were recorded.

    python -m chaos.selftest.recorded NAME RUN

keeps the directory RUN of a green run of ``scenarios/NAME.yaml`` as the base NAME. Only the paths of
Python, this project and reports on this machine are changed in it. A recorded run does not follow the code that makes
runs, so nightly tests make each anew and compare the defects of its base and its events with the record.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import chaos
from chaos.base.walking import TooDeep, entries_below, raise_unseen
from chaos.checks.judge import judge

RECORDED = Path(__file__).parent / "bases"

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file in an archive, so that one run is always the same archive."""

_MOST = 4 << 20
"""Most bytes of an archive. Checkpoints of the plain job have some kB each; a larger run is no small run."""


class NotRecorded(Exception):
    """The run cannot be a base. The text gives the reason."""


def archive_of(name: str) -> Path:
    """Return the path of the recorded run of a base, whether it exists or not."""
    return RECORDED / f"{name}.zip"


def record(name: str, run_dir: Path, archive: Path) -> None:
    """Keep a green run of scenario ``name`` in ``archive``. Raises NotRecorded for any other run."""
    unfinished = archive.with_suffix(".new")
    try:
        pack(run_dir, unfinished, neutral_names(run_dir))
        if (size := unfinished.stat().st_size) > _MOST:
            raise NotRecorded(f"{run_dir} takes {size:,} bytes, more than {_MOST:,}: use a smaller job")
        with tempfile.TemporaryDirectory() as place:
            unpack(unfinished, Path(place) / "run")
            judgement = judge(Path(place) / "run")
        if judgement.plan.identity.scenario != name:
            raise NotRecorded(f"{run_dir} is a run of {judgement.plan.identity.scenario}, not of {name}")
        if judgement.verdict != "pass":
            raise NotRecorded(f"{run_dir} is {judgement.verdict}, and no base: see chaos analyze {run_dir}")
        unfinished.replace(archive)
    except TooDeep as error:
        raise NotRecorded(str(error)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def neutral_names(run_dir: Path) -> dict[str, str]:
    """Return the replacements of the directories of this machine that a run names."""
    return {
        str(run_dir.resolve().parent): "/reports",
        str(Path(chaos.__file__).resolve().parent.parent): "/chaos",
        sys.prefix: "/python",
    }


def pack(run_dir: Path, archive: Path, renamed: Mapping[str, str]) -> None:
    """Write all directories and plain files of a run into ``archive``. ``renamed`` maps texts to their replacements.

    Raises OSError if a part of the run cannot be read.
    """
    archive.parent.mkdir(exist_ok=True)
    # The longest first: one may be in another.
    names = [(name.encode(), renamed[name].encode()) for name in sorted(renamed, key=len, reverse=True)]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in entries_below(run_dir, raise_unseen):
            within = path.relative_to(run_dir).as_posix()
            if path.is_symlink():
                continue
            if path.is_dir():
                # An empty one counts: a search of a directory that is not there has seen nothing.
                packed.writestr(_entry(f"{within}/", 0o700), b"")
            elif path.is_file():
                content = path.read_bytes()
                for name, other in names:
                    content = content.replace(name, other)
                packed.writestr(_entry(within, 0o600), content)


def _entry(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = mode << 16
    return entry


def unpack(archive: Path, target: Path) -> None:
    """Extract the run in ``archive`` into the new directory ``target``."""
    target.mkdir(parents=True)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(target)


def _main(arguments: Sequence[str]) -> int:
    name, run_dir = arguments
    try:
        record(name, Path(run_dir), archive_of(name))
    except NotRecorded as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
