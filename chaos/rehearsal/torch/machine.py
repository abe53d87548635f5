"""The loop's view of its machine: the device. Set from outside, as by a driver; the loop only asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.rehearsal.torch.device import TorchDevice


def device() -> TorchDevice:
    """Return the device of this process. Raises RuntimeError where there is none."""
    raise RuntimeError(
        "there is no device: the device layer of a rehearsal makes one, so start this job by `chaos run`"
    )
