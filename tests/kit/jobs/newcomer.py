"""A newcomer on this machine: another user than root, in a locale that is not UTF-8, with a Python that may be used."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

LOCALES = {
    "ascii": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "gbk": {"LC_ALL": "zh_CN.GBK", "PYTHONUTF8": "0"},
    "streams": {"LC_ALL": "C", "PYTHONIOENCODING": "gbk"},
}

AS_SOMEBODY = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
"""Sees itself as another user than root, and has none of root's rights."""


@dataclass(frozen=True)
class Newcomer:
    """How a command is started as this user: words before it, or the user's number; and an interpreter for it."""

    words: tuple[str, ...]
    user: int | None
    python: str

    def owns(self, place: Path) -> None:
        """Give a directory with all that is in it to the user."""
        if self.user is not None:
            for path in (place, *place.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)

    def run(self, command: list[str], place: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end; its errors are in its output."""
        return subprocess.run(
            [*self.words, *command],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )


def newcomer(place: Path) -> Newcomer:
    """Return a user who is not root and can use ``place``. Skips the test where nobody but root can use Python."""
    if os.geteuid() != 0:
        return Newcomer((), None, sys.executable)
    packages = Path(pytest.__file__).parent
    own = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for python in (os.path.realpath(sys.executable), f"/usr/bin/{own}", f"/usr/local/bin/{own}"):
        if all(map(_for_everybody, (Path(python), packages, place))):
            return Newcomer((), pwd.getpwnam("nobody").pw_uid, python)
    if subprocess.run([*AS_SOMEBODY, "true"], capture_output=True).returncode == 0:
        return Newcomer(tuple(AS_SOMEBODY), None, sys.executable)
    pytest.skip("no Python of this version outside root's directories, and no user namespaces")


def make_gbk(place: Path) -> dict[str, str]:
    """Return the variables that find the locale zh_CN.GBK, which few machines have. Skips where it cannot be made."""
    if shutil.which("localedef") is not None:
        call = ["localedef", "--no-archive", "-c", "-i", "zh_CN", "-f", "GBK", str(place / "zh_CN.GBK")]
        subprocess.run(call, capture_output=True)
    if not (place / "zh_CN.GBK").exists():
        pytest.skip("the locale zh_CN.GBK cannot be made on this machine: localedef or its sources are missing")
    return {"LOCPATH": str(place)}


def _for_everybody(path: Path) -> bool:
    """Return whether any user may read a path: each directory above it lets everybody through."""
    try:
        if not path.stat().st_mode & stat.S_IROTH:
            return False
        return all(above.stat().st_mode & stat.S_IXOTH for above in path.resolve().parents)
    except OSError:
        return False
