"""What this job finds on its machine: the device. Put in place from outside, as a driver is; the job only asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.rehearsal.plain.device import PlainDevice


def device() -> PlainDevice:
    """Return the device of this process. Raises RuntimeError where there is none."""
    raise RuntimeError(
        "there is no device: the device layer of a rehearsal makes one, so start this job by `chaos run`"
    )
