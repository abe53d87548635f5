"""``flip-bit``: flips one bit of one value, and nothing reports it: silent data corruption (SDC).

Made at the framework's seam: in a gradient before it is reduced, in a weight before the step, or in an activation
between two layers, with the trigger's phase ``allreduce.enter``, ``step.begin`` or ``forward``. ``parameter`` names a
weight or a value of the optimizer. If left out it is drawn (a weight), and so are ``element`` and ``bit``.

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
