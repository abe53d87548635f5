"""Credentials of a kubeconfig, kept in memory.

The client's package writes certificates and keys that stand in a kubeconfig into temporary files, and removes them when
the process ends; after a SIGKILL they would stay, on the volume of the pods where TMPDIR is there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

_FILES = ("ssl_ca_cert", "cert_file", "key_file")


def load_in_memory(file: str | None, context: str | None) -> tuple[Any, list[IO[bytes]]]:
    """The client's configuration of that context, and the files in memory that must stay open as long as it is used.

    Raises what ``kubernetes.config.load_kube_config`` does.
    """
    from kubernetes import config
    from kubernetes.client import Configuration
    from kubernetes.config import kube_config

    configuration: Any = type.__call__(Configuration)  # of its own: calling it gives a copy of a shared default
    kept = []
    try:
        config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
        written = set(kube_config._temp_files.values())
        for name in _FILES:
            path = getattr(configuration, name, None)
            if isinstance(path, str) and path in written:
                kept.append(_in_memory(Path(path)))
                setattr(configuration, name, f"/proc/self/fd/{kept[-1].fileno()}")
    finally:
        kube_config._cleanup_temp_files()
    return configuration, kept


def _in_memory(path: Path) -> IO[bytes]:
    file = os.fdopen(os.memfd_create(path.name), "w+b")
    file.write(path.read_bytes())
    file.flush()
    return file
