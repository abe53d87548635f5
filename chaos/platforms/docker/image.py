"""Images for nodes: a skeleton without files of its own that borrows this host's Python, made without a registry."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import chaos
from chaos.platforms.docker.engine import IMAGE_LABEL, engine_errors
from chaos.scenario.models.defaults import SKELETON

if TYPE_CHECKING:
    from docker import DockerClient

_DIRECTORIES = ("dev", "etc", "home", "proc", "root", "run", "sys", "usr", "var")
_IN_USR = ("bin", "sbin", "lib", "lib64")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}
_BORROWED = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")


def skeleton() -> bytes:
    """Return a root file system of empty directories, as a tar file: its content is bound in from the host."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name in (*_DIRECTORIES, "tmp"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(entry)
        for name in _IN_USR:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(entry)
        for name, text in _FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


def make_skeleton(client: DockerClient, name: str = SKELETON) -> str:
    """Make the image, or make it anew, and return its id. Raises PlatformError."""
    repository, _, tag = name.partition(":")
    with engine_errors(f"the image {name} cannot be made"):
        client.api.import_image_from_data(
            skeleton(), repository=repository, tag=tag or "latest", changes=[f"LABEL {IMAGE_LABEL}=skeleton"]
        )
        return str(client.images.get(name).id)


def borrowed(
    python_path: Iterable[str] = tuple(sys.path), prefixes: Iterable[str] = (sys.prefix, sys.base_prefix)
) -> tuple[Path, ...]:
    """Return the paths of this host that a node of the skeleton needs, read-only.

    They are the system's programs, and this Python with everything that it imports from. A virtual environment's Python
    is a link to a Python outside it, which is needed too.
    """
    paths = [Path("/usr"), *map(Path, _BORROWED), *map(Path, prefixes), Path(chaos.__file__).parent]
    paths += [Path(entry) for entry in python_path if entry]
    return outermost(path for path in paths if path.exists())


def outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Keep the paths that are below no other path, each once."""
    known = sorted(dict.fromkeys(paths))
    return tuple(path for path in known if not any(other in path.parents for other in known))
