"""``wrong-batch``: makes a rank train the batch of the step before once more, instead of its own.

From the next step on the order is right again.

On Ascend: a loader that repeats a buffer, or an order that was not restored.
"""

from __future__ import annotations

from chaos.faults.values.altering import Altering
from chaos.plan.rules.required_place import RequiredPlace

KIND = Altering("wrong-batch", "batch", RequiredPlace(phases=("forward",), handlers=False))
