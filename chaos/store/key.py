"""The key of a user, by which ``chaos heal`` recognises this user's own runs. It is never in reports/.

It is 32 random bytes in a file that only its user can read. A short-lived user, such as a runner of a CI that lives for
one job, gets the key by a file or a variable, so that a later job can heal the leftovers of an earlier job.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import secrets
import stat
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.history.seal import Seal
from chaos.machine.job.launcher_environment import KEY_FILE_VARIABLE, KEY_VARIABLE

_TEXT = re.compile(rb"[0-9a-f]{64}\n?")
_FORM = "it must hold 64 hexadecimal digits, as `openssl rand -hex 32` prints them"


class KeyUnusable(Refused):
    """There is no key that proves anything. The text says what is wrong, and what to do."""


def seal_of(run: str) -> Seal:
    """Return the seal of the run with this identity; without a user's key, make one. Raises KeyUnusable."""
    return Seal(_key() or _made(key_file()), run)


def known_seal(run: str) -> Seal | None:
    """Return the seal as :func:`seal_of` does, but None where this user has no key and so has made no run.

    Raises KeyUnusable.
    """
    key = _key()
    return None if key is None else Seal(key, run)


def key_file() -> Path:
    """Return the key's path: CHAOS_KEY_FILE, or a file in the user's directory for program state (XDG_STATE_HOME)."""
    if named := os.environ.get(KEY_FILE_VARIABLE):
        return Path(named)
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else _home() / ".local" / "state") / "chaos" / "key"


def source_of_key() -> str:
    """Return the source of the key, in words; nothing of the key itself."""
    return f"the variable {KEY_VARIABLE}" if os.environ.get(KEY_VARIABLE) else str(key_file())


def _home() -> Path:
    """Return the home directory: HOME, unless it is another user's, as with sudo; else the password database's."""
    named = Path(os.environ.get("HOME", ""))
    with contextlib.suppress(OSError):
        if named.is_absolute() and named.stat().st_uid == os.geteuid():
            return named
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise KeyUnusable(
            f"user {os.geteuid()} has no home directory for its key: give {KEY_FILE_VARIABLE} or {KEY_VARIABLE}"
        ) from None


def _key() -> bytes | None:
    """Return the existing key; None where there is none."""
    if text := os.environ.get(KEY_VARIABLE):
        return _parsed(text.strip().encode("utf-8", "surrogateescape"), f"the variable {KEY_VARIABLE}")
    path = key_file()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if os.environ.get(KEY_FILE_VARIABLE):
            raise KeyUnusable(f"{KEY_FILE_VARIABLE}: there is no {path}; {_FORM}") from None
        return None
    except OSError as error:
        why = "is a link, and links are not followed" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise KeyUnusable(f"the key {path} {why}") from error
    try:
        _refuse(path, os.fstat(descriptor))
        return _parsed(os.read(descriptor, 256), str(path))
    finally:
        os.close(descriptor)


def _refuse(path: Path, status: os.stat_result) -> None:
    """Raise KeyUnusable for a file that others can read, can change, or have supplied."""
    if not stat.S_ISREG(status.st_mode):
        raise KeyUnusable(f"the key {path} is no plain file")
    if status.st_uid != os.geteuid():
        raise KeyUnusable(f"the key {path} belongs to user {status.st_uid}, not to {os.geteuid()}: use one of your own")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise KeyUnusable(f"the key {path} is open to others (mode {mode:04o}): make a new one, or chmod 600 it")


def _parsed(text: bytes, where: str) -> bytes:
    if not _TEXT.fullmatch(text):
        raise KeyUnusable(f"the key in {where} is none: {_FORM}")
    return bytes.fromhex(text.decode("ascii"))


def _made(path: Path) -> bytes:
    """Make the key. Of several processes that make it at once, one succeeds, and all use its key."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_hex(32).encode() + b"\n")
                file.flush()
                os.fsync(descriptor)
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        advice = f"give {KEY_FILE_VARIABLE} or {KEY_VARIABLE}"
        raise KeyUnusable(
            f"the key of this user cannot be made in {path.parent}: {error.strerror}; {advice}"
        ) from error
    key = _key()
    if key is None:
        raise KeyUnusable(f"the key {path} was made, and is gone again")
    return key
