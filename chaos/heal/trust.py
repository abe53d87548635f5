"""Whether a run's directory was made by this user's harness on this machine: nothing else may be acted on.

A directory from elsewhere says whatever its author likes. Its content is believed only with a proof of this user's key,
and only where the directory has the place and the owner that the proof names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.base.clock import boot_id
from chaos.history.seal import PROOF, Seal
from chaos.store.directory import DEVICE, INODE, OWNER, RunDirectoryError, read_run
from chaos.store.host import HOST, other_host, this_host
from chaos.store.key import KeyUnusable, known_seal, source_of_key


@dataclass(frozen=True)
class Trust:
    """The trust in a run by its run.json. ``refused`` is the reason to act on nothing; None: the run is this user's.

    ``seal`` is this user's seal for a run of that identity; None where there is no key, or no identity.
    """

    described: Mapping[str, Any] | None
    seal: Seal | None
    refused: str | None


def trust_in(run_dir: Path) -> Trust:
    """Inspect a run's directory; nothing in it is changed.

    Raises RunDirectoryError where run.json cannot be read, or does not identify the run.
    """
    described = read_run(run_dir)
    try:
        seal = known_seal(described["token"])
    except KeyUnusable as error:
        return Trust(described, None, f"its owner is unknown: {error}")
    return Trust(described, seal, _why_refused(run_dir, described, seal))


def seal_in(run_dir: Path) -> Seal | None:
    """Return this user's seal for the run in a directory; None where nothing there can be proved."""
    try:
        return trust_in(run_dir).seal
    except RunDirectoryError:
        return None


def _why_refused(run_dir: Path, described: Mapping[str, Any], seal: Seal | None) -> str | None:
    if seal is None:
        return f"this user has no key ({source_of_key()}), so it was not made by this user's chaos"
    if PROOF not in described:
        return "its run.json carries no proof: an earlier version of chaos, or another program, made it"
    if not seal.proves_document(described):
        return f"its run.json was not made with this user's key ({source_of_key()}), or was changed since"
    here = this_host()
    if (elsewhere := other_host(described, here)) is not None:
        return f"the run was made on {elsewhere}: heal it there, or delete its directory if that host is gone"
    status = run_dir.stat()
    if status.st_uid != described.get(OWNER):
        return f"its directory belongs to user {status.st_uid}, and was made as that of user {described.get(OWNER)}"
    same_boot = described[HOST].get("boot") == boot_id()
    if status.st_ino != described.get(INODE) or (same_boot and status.st_dev != described.get(DEVICE)):
        return "the run was made in another directory: this one is a copy, or was restored"
    return None
