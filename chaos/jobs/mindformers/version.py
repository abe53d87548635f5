"""Which MindFormers a job runs: that of a checkout, or the installed one. Nothing is imported."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

_ASSIGNED = re.compile(r"""^__version__\s*=\s*["'](\d+)\.(\d+)""", re.MULTILINE)
_MOST = 1 << 16


def version_of(checkout: Path | None) -> tuple[int, int] | None:
    """First two numbers of the version, None where it cannot be told."""
    if checkout is not None:
        try:
            with (checkout / "mindformers" / "__init__.py").open("rb") as stream:
                found = _ASSIGNED.search(stream.read(_MOST).decode("utf-8", "replace"))
        except (OSError, ValueError):
            return None
        return None if found is None else (int(found[1]), int(found[2]))
    try:
        numbers = re.findall(r"\d+", metadata.version("mindformers"))
    except metadata.PackageNotFoundError:
        return None
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else None
