"""``wrong-batch``: makes a rank train the batch of the step before once more, instead of its own.

Its own batch is left out; from the next step on the order is right again.

On Ascend: a loader that gives a buffer twice, a data set whose order was not restored, a shard that two ranks read.
"""

from __future__ import annotations

from chaos.faults.values.altering import Altering
from chaos.plan.rules.required_place import RequiredPlace

KIND = Altering("wrong-batch", "batch", RequiredPlace(phases=("forward",), handlers=False))
