"""A lock on a file that the kernel releases when its holder ends, however it ends."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType

_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)


class FileLock:
    """An exclusive flock on a file, until ``release`` or the end of this process. A context manager."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def try_acquire(cls, path: Path) -> FileLock | None:
        """Take the lock, or return None if another holder has it. The descriptor is closed on exec.

        On a file system that has become read-only a file that is there is locked all the same.
        """
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        if is_no_file(path):
            raise OSError(errno.EINVAL, "is not a plain file", str(path))
        try:
            descriptor = os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
            try:
                descriptor = os.open(path, flags | os.O_RDONLY)
            except FileNotFoundError:
                raise error from None  # the reason why it cannot be made
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Locked, but is this still the file of that name?
            if os.fstat(descriptor).st_nlink:
                return cls(path, descriptor)
        except BlockingIOError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def write(self, text: str) -> None:
        """Replace the content of the file. Raises OSError."""
        line = text.encode()
        os.pwrite(self._descriptor, line, 0)
        os.ftruncate(self._descriptor, len(line))

    def release(self) -> None:
        """Give the lock back; the file stays. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def is_no_file(path: Path) -> bool:
    """Return whether the path is a device, a pipe or a socket, where opening alone may have an effect."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
