"""The ranks that have trained to their end or were ordered to exit: a file each, in the run's private directory.

A host of the SDK's controller outside the ranks must know when to end it. A rank's processor leaves only when the
controller does (seen with the vendor's MindIO TFT 7.3: a rank that leaves first connects again and waits). So
the ranks' processes do not show the end, and the SDK has no call that reports it.
"""

from __future__ import annotations

import contextlib
import os

from chaos.agent.configuration import read_configuration

TRAINED, EXITING = "trained", "exiting"


def note(end: str, rank: int) -> None:
    """Note the end of this rank: ``TRAINED`` or ``EXITING``."""
    directory = _directory()
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, mode=0o700)
    os.close(os.open(os.path.join(directory, f"{end}-{rank}"), os.O_WRONLY | os.O_CREAT, 0o600))


def count_noted(end: str) -> int:
    """Return how many ranks have noted this end."""
    try:
        return sum(name.startswith(f"{end}-") for name in os.listdir(_directory()))
    except FileNotFoundError:
        return 0


def forget() -> None:
    """Remove all notes: all ranks are about to be started again."""
    directory = _directory()
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        os.unlink(os.path.join(directory, name))


def _directory() -> str:
    configuration = read_configuration(os.environ["CHAOS_AGENT"])
    assert configuration.secret is not None
    return os.path.join(os.path.dirname(configuration.secret), f"ends-{configuration.attempt}")
