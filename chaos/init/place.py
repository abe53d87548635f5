"""Writing files of the user's directory: never over a file that is there, and all of them or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chaos.base.refusal import Refused


def write_new(path: Path, text: str, *, force: bool = False, mode: int = 0o644) -> None:
    """Write a file at once. Raises Refused where one is there, unless it is to be replaced, and where none can be."""
    try:
        with tried(path.parent, text) as written:
            written.chmod(mode)
            if force:
                written.replace(path)
            else:
                os.link(written, path)
    except FileExistsError:
        raise Refused(f"{path} is there already, and was not touched: --force writes it anew") from None
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror}") from error


@contextmanager
def tried(directory: Path, text: str) -> Iterator[Path]:
    """Write a text to a hidden file of a directory for as long as it is needed. Raises OSError."""
    handle, name = tempfile.mkstemp(prefix=".chaos-init-", suffix=".yaml", dir=directory)
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield path
    finally:
        with suppress(FileNotFoundError):
            path.unlink()
