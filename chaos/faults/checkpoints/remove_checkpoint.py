"""``remove-checkpoint``: removes the newest checkpoint of a rank; its older ones and the files beside it stay.

On Ascend: a clean-up, a full quota or a broken copy.
"""

from __future__ import annotations

from chaos.faults.checkpoints.checkpoint_damage import Damage
from chaos.faults.checkpoints.checkpoint_parts import Hit
from chaos.faults.kind import Victim


def nothing(hit: Hit, victim: Victim) -> None:
    """Return no content: the file is taken away."""


KIND = Damage("remove-checkpoint", "gone", nothing)
