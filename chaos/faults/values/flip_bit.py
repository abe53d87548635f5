"""``flip-bit``: flips one bit of one value, and nothing reports it: silent data corruption (SDC).

Made at the framework's seam, in a gradient before it is reduced, in a weight before the step, or in an activation
between two layers; later values are computed from it. Parameters:

- ``where``: ``gradient`` (default), ``weight`` or ``activation``, with the trigger's phase ``allreduce.enter``,
  ``step.begin`` or ``forward``.
- ``parameter``: the name of a weight or of a value of the optimizer. Default: a weight, drawn.
- ``element``: its place in the flat array. Default: drawn.
- ``bit``: 0 is the lowest of the mantissa. Default: drawn.
- ``seed``: the seed of the drawn values, 0 by default.

On Ascend: a defective core or memory cell that ECC does not see; no tool makes one.
"""

from __future__ import annotations

from types import MappingProxyType

from chaos.faults.values.altering import Altering
from chaos.faults.values.plan_corruption import PLACES
from chaos.plan.rules.parameters import Parameter
from chaos.plan.rules.required_place import RequiredPlace

KIND = Altering(
    "flip-bit",
    "gradient",
    RequiredPlace(phases=tuple(PLACES.values()), handlers=False),
    MappingProxyType(
        {
            "where": Parameter("what is hit", words=tuple(PLACES), default="gradient"),
            "parameter": Parameter("the name of a parameter, where a weight is hit", text=True),
            "element": Parameter("the place in the flat array", least=0, most=2**62, whole=True),
            "bit": Parameter("the bit, 0 being the lowest", least=0, most=63, whole=True),
            "seed": Parameter("seed of what is drawn", least=0, most=2**62, whole=True, default=0),
        }
    ),
)
