"""``exit``: ends a rank at once with an exit code, without cleaning up.

With code 0 msrun and the cluster's agent take the rank's training for complete.

On Ascend: a library that calls ``_exit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import Victim
from chaos.faults.rank_acts.own_end import OwnEnd
from chaos.plan.rules.parameters import Parameter

DEFAULT_CODE = 1


@dataclass(frozen=True)
class Exit(OwnEnd):
    """Ends the process by ``os._exit``."""

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the act, and the exit code."""
        return {**super().order(victim), "code": self.code(victim)}

    def code(self, victim: Victim) -> int:
        """Return the exit code of the scenario."""
        return int(victim.parameters.get("code", DEFAULT_CODE))


KIND = Exit(
    "exit",
    parameters=MappingProxyType(
        {"code": Parameter("the exit code", least=0, most=255, whole=True, default=DEFAULT_CODE)}
    ),
)
