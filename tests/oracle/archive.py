"""Archives of the recorded runs. One run is always the same archive, wherever and whenever it is made.

They are compressed as a whole, not file for file: the ranks of a run, and its fault-free run, record the same digests,
so a run takes a third of what it takes as a zip archive.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from chaos.selftest.recorded import pack, unpack

SUFFIX = ".tar.xz"


def write_archive(run_dir: Path, archive: Path, renamed: Mapping[str, str]) -> None:
    """Write a run into ``archive``; ``renamed`` says what is replaced in its files."""
    with tempfile.TemporaryDirectory() as place:
        pack(run_dir, Path(place, "run.zip"), renamed)
        with zipfile.ZipFile(Path(place, "run.zip")) as packed, tarfile.open(archive, "w:xz", preset=9) as whole:
            for entry in packed.infolist():
                member = tarfile.TarInfo(entry.filename.rstrip("/"))
                member.mode, member.size = entry.external_attr >> 16, entry.file_size
                member.type = tarfile.DIRTYPE if entry.is_dir() else tarfile.REGTYPE
                whole.addfile(member, io.BytesIO(packed.read(entry)))


def read_archive(archive: Path, place: Path) -> None:
    """Put the run that is in ``archive``, or in a zip archive of ``chaos selftest``, in the new directory ``place``."""
    if archive.suffix == ".zip":
        unpack(archive, place)
        return
    place.mkdir(parents=True)
    with tarfile.open(archive) as whole:
        for member in whole:
            content = whole.extractfile(member)
            if content is None:
                (place / member.name).mkdir()
            else:
                (place / member.name).write_bytes(content.read())
