"""``flip-bit``: flips one bit of one value, and nothing reports it: silent data corruption (SDC).

A gradient needs the phase ``allreduce.enter``, a weight in ``step.begin``, an activation in ``forward``.
``parameter`` names a weight or a value of the optimizer. If left out it is drawn (a weight), and so are ``element`` and
``bit``.

On Ascend: a defective core or memory cell that ECC does not see.
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
            "parameter": Parameter("name of a parameter, where a weight is hit", text=True),
            "element": Parameter("place in the flat array", least=0, most=2**62, whole=True),
            "bit": Parameter("0 is the lowest", least=0, most=63, whole=True),
            "seed": Parameter("seed of the draw", least=0, most=2**62, whole=True, default=0),
        }
    ),
)
