"""Writing a report's file so that no reader ever sees half of it."""

from __future__ import annotations

import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` in place of ``path`` in one step. Raises OSError, and leaves nothing behind then.

    A leftover of a SIGKILL has a name by which ``heal`` recognises it (chaos.store.directory).
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
