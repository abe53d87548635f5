"""A directory taken from one container: a removed directory is mounted over it there, and nowhere else.

The mounts that the engine binds into a container are private to it, so neither this host nor another container sees the
mount. With the container the mount is gone.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.mount_namespace import do_in
from chaos.machine.linux.mounts import REMOVED, Mount, all_mounts, mount_removed, unmount
from chaos.platforms.docker.processes import first_process

if TYPE_CHECKING:
    from docker.models.containers import Container


def take_directory(container: Container, directory: Path) -> None:
    """Cover the path in the container with a removed directory. Raises PlatformError."""
    try:
        do_in(first_process(container), functools.partial(mount_removed, directory))
    except OSError as error:
        raise PlatformError(f"{directory} cannot be taken from {container.name}: {error}") from error


def give_back(container: Container) -> list[str]:
    """Remove every mount that covers a directory in the container, and return their paths. May be called twice.

    Raises PlatformError.
    """
    pid = first_process(container)
    try:
        taken = [mount for mount in all_mounts(pid) if _is_taken(mount)]
        for mount in reversed(taken):
            do_in(pid, functools.partial(unmount, Path(mount.point)))
    except OSError as error:
        raise PlatformError(f"what was taken from {container.name} cannot be given back: {error}") from error
    return [mount.point for mount in taken]


def _is_taken(mount: Mount) -> bool:
    """Return whether a mount is a removed directory, named by :func:`mount_removed` after the directory it covers."""
    return mount.removed and mount.root.removesuffix("//deleted").endswith(f"/{REMOVED.format(Path(mount.point).name)}")
