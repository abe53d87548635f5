"""``data-stall``: delays the next batch of a rank by ``seconds``.

The other ranks wait for it in the all-reduce.

On Ascend: slow storage or a slow host.
"""

from __future__ import annotations

from types import MappingProxyType

from chaos.faults.rank_acts.hanging import Hanging
from chaos.faults.rank_acts.plan_hangs import SECONDS
from chaos.plan.job_effect import NONE
from chaos.plan.rules.parameters import Parameter
from chaos.plan.rules.required_place import RequiredPlace

KIND = Hanging(
    "data-stall",
    NONE,
    parameters=MappingProxyType({SECONDS: Parameter("delay in seconds", least=0.001, most=86400, required=True)}),
    required_place=RequiredPlace(phases=("step.begin",), handlers=False),
)
