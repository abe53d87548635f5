"""Whether enough files may be open for a job of a number of ranks, here and in every process started from here."""

from __future__ import annotations

import resource

from chaos.base.refusal import Refused

_EACH = 2
"""The harness has a connection to each rank, and to the rank's control endpoint where there is one. The first rank of a
rehearsal has as many: one to each rank in the communicator, and one where it hosts the SDK's controller."""
_BESIDE = 64
"""The other open files of a process: logs, histories, sockets of its own, and the libraries of a framework."""


def refuse_too_few(ranks: int) -> None:
    """Raise Refused where this process may open too few files; its children inherit the limit.

    The limit is not raised here: a job with more files than its user's limit might hide a leak of its own.
    """
    needed = _EACH * ranks + _BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= needed:
        return
    enough = hard in (resource.RLIM_INFINITY, -1) or hard >= needed
    advice = f"call `ulimit -n {needed}` in this shell, and then chaos again"
    if not enough:
        advice = (
            f"the hard limit is {hard:,}: raise it first, as root (`ulimit -Hn {needed}`), in "
            "/etc/security/limits.conf, or by --ulimit nofile of the container"
        )
    raise Refused(
        f"a job of {ranks:,} ranks on this host needs {needed:,} open files in one process ({_EACH} for each rank, and "
        f"{_BESIDE} besides), and the limit of open files (RLIMIT_NOFILE) is {soft:,}; {advice}"
    )
