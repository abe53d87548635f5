"""Relative paths of a configuration into a checkout.

The job runs elsewhere, so they are made absolute. Paths of the job's output stay unchanged: the output belongs to the
run, and a checkout stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_READ = re.compile(r"(?:^|_)(?:files?|paths?|dirs?|directory|folder|load_checkpoint)$")
"""Keys with values that are paths even without a slash, such as ``vocab_file`` and ``dataset_dir``."""

_WRITTEN = re.compile(r"(?:save|output|profile|tensorboard|summary|dump|log|compile_cache)(?:_|$)|directory$")
"""Keys of a job's output, such as ``save_graphs_path`` and the callback's ``directory``."""

_DATA = (".bin", ".idx")
"""Endings of an indexed data set. MindFormers names the set without either (``data_path``)."""


def from_checkout(value: Any, checkout: Path, *, path: bool = False) -> Any:
    """Return plain data with the paths into the checkout made absolute.

    Text with a slash is a path anywhere; other text only with ``path``: below a key that is known for paths.
    """
    if isinstance(value, Mapping):
        return {
            key: part if _WRITTEN.match(str(key)) else from_checkout(part, checkout, path=path or _names_path(key))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [from_checkout(part, checkout, path=path) for part in value]
    if not isinstance(value, str) or not (path or "/" in value) or not value or value.startswith("/"):
        return value
    whole = str(checkout / value)
    # Path.exists raises where a name is too long.
    if not any(os.path.exists(f"{whole}{ending}") for ending in ("", *_DATA)):  # noqa: PTH110
        return value
    return f"{whole}/" if value.endswith("/") else whole


def _names_path(key: object) -> bool:
    return _READ.search(str(key)) is not None
