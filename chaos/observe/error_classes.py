"""Classes of errors of Python, by what an error of a rank can come from: a fault elsewhere, or its own program only."""

from __future__ import annotations

OF_FAULTS = frozenset(
    {
        *("RuntimeError", "MemoryError", "KeyboardInterrupt", "EOFError", "OSError", "BlockingIOError"),
        *("BrokenPipeError", "ChildProcessError", "ConnectionAbortedError", "ConnectionError"),
        *("ConnectionRefusedError", "ConnectionResetError", "FileExistsError", "FileNotFoundError"),
        *("InterruptedError", "IsADirectoryError", "NotADirectoryError", "PermissionError", "ProcessLookupError"),
        "TimeoutError",
    }
)
"""Classes of errors that may follow from a fault elsewhere: errors of the framework, of the system, and of an end."""

OF_ANYBODY = frozenset({"Exception", "BaseException"})
"""The base classes from which libraries derive their own errors: they may mean either."""
