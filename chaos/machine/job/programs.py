"""Programs by their command lines: Pythons, and the programs that start ranks.

The remote helper uses this: standard library only, Python 3.9.
"""

from __future__ import annotations

from pathlib import PurePath

_TORCHRUN = frozenset({"torchrun", "ft_launcher", "-m torch.distributed.run", "-m torch.distributed.launch"})
_LAUNCHERS = _TORCHRUN | {"msrun", "plainrun.py"}

_WITH_VALUE = ("-X", "-W")
"""Options of Python's that take the next argument."""


def is_python(cmdline: tuple[str, ...]) -> bool:
    """Return whether this is the command line of a Python."""
    return any("python" in PurePath(argument).name for argument in cmdline[:1])


def program_of(cmdline: tuple[str, ...]) -> str | None:
    """Return the program of a Python: the name of its script, its module, or its code; None of any other program."""
    if not is_python(cmdline):
        return None
    arguments = iter(cmdline[1:])
    for argument in arguments:
        if argument in _WITH_VALUE:
            next(arguments, None)
        elif argument in ("-m", "-c"):
            return f"{argument} {next(arguments, '')}"
        elif not argument.startswith("-"):
            return PurePath(argument).name
    return "python"


def starts_ranks(cmdline: tuple[str, ...]) -> bool:
    """Return whether this is the command line of a launcher, or of a tool that runs one, such as ``timeout``."""
    return _is_one_of(_LAUNCHERS, cmdline)


def is_torchrun(cmdline: tuple[str, ...]) -> bool:
    """Return whether this is the command line of torchrun, by any of its names, or of a tool that runs it."""
    return _is_one_of(_TORCHRUN, cmdline)


def _is_one_of(launchers: frozenset[str], cmdline: tuple[str, ...]) -> bool:
    return program_of(cmdline) in launchers or any(PurePath(argument).name in launchers for argument in cmdline[:3])
