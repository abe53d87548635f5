"""Credentials of a kubeconfig, kept in memory.

The client's package writes the certificates and keys of a kubeconfig into temporary files, and removes them when the
process ends. After a SIGKILL they would stay: on the pods' volume where TMPDIR is there. With a token it also writes
their names into the configuration again before each request, and writes new files when a plugin is asked for another
token.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_FILES = ("ssl_ca_cert", "cert_file", "key_file")

_LIBRARY = threading.RLock()
"""Held while temporary files of the client's package may exist: it has one list of them for the whole process."""


def load_in_memory(file: str | None, context: str | None) -> tuple[Any, list[IO[bytes]]]:
    """Return the client's configuration of that context, and the files in memory that must stay open while it is used.

    The list grows where a later request brings other credentials. Raises what ``kubernetes.config.load_kube_config``
    does.
    """
    from kubernetes import config

    configuration, moved = _configuration(), _Moved()
    with moved.from_files(configuration):
        config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
    hook = configuration.refresh_api_key_hook
    if hook is not None:
        configuration.refresh_api_key_hook = _refreshing(hook, moved)
    return configuration, moved.files


def _refreshing(hook: Callable[[Any], None], moved: _Moved) -> Callable[[Any], None]:
    """Return the package's own hook; no other thread sees the names of its temporary files.

    It works on a configuration of its own: several threads may read the real configuration meanwhile.
    """

    def refresh(configuration: Any) -> None:
        fresh = _configuration()
        with moved.from_files(fresh):
            hook(fresh)
        configuration.api_key.update(fresh.api_key)
        for name in _FILES:
            if getattr(fresh, name, None) is not None:
                setattr(configuration, name, getattr(fresh, name))

    return refresh


class _Moved:
    """The content of the client package's temporary files. ``files`` are the files in memory that have it now."""

    def __init__(self) -> None:
        self.files: list[IO[bytes]] = []
        self._names: dict[str, str] = {}

    @contextmanager
    def from_files(self, configuration: Any) -> Iterator[None]:
        """Let the package write files during the block; at its end there are none, and ``configuration`` names none."""
        from kubernetes.config import kube_config

        with _LIBRARY:
            try:
                yield
                written = set(kube_config._temp_files.values())
                for name in _FILES:
                    path = getattr(configuration, name, None)
                    if isinstance(path, str) and path in written:
                        self._names[path] = self._in_memory(Path(path))
                    if path in self._names:
                        setattr(configuration, name, self._names[path])
            finally:
                kube_config._cleanup_temp_files()

    def _in_memory(self, path: Path) -> str:
        self.files.append(os.fdopen(os.memfd_create(path.name), "w+b"))
        self.files[-1].write(path.read_bytes())
        self.files[-1].flush()
        return f"/proc/self/fd/{self.files[-1].fileno()}"


def _configuration() -> Any:
    """Return a configuration of its own: calling the class gives a copy of a shared default."""
    from kubernetes.client import Configuration

    return type.__call__(Configuration)
