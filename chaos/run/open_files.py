"""Whether as many files may be open as a job of so many ranks needs, here and in what is started from here."""

from __future__ import annotations

import resource

from chaos.base.refusal import Refused

_EACH = 2
"""The harness has a connection to a rank, and to the control endpoint in it where it has one. The first rank of a
rehearsal has as many: one to each rank in the communicator, and one where it hosts the SDK's controller."""
_BESIDE = 64
"""What a process has open besides: logs, histories, sockets of its own, and the libraries of a framework."""


def refuse_too_few(ranks: int) -> None:
    """Raise Refused where this process may open too few files, which what it starts inherits.

    The limit is not raised here: a job with more files than its user would give it might hide a leak of its own.
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
