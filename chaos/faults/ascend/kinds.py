"""Faults of Ascend devices."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "device-reset": Kind(
            "chaos.faults.ascend.device_reset:KIND",
            "chaos.faults.ascend.proof:DEVICE_RESET",
            Effect(fails=True, on_card=True),
        ),
        "npu-link-down": Kind(
            "chaos.faults.ascend.npu_link_down:KIND",
            "chaos.faults.ascend.proof:LINK_DOWN",
            Effect(on_card=True, breaks_link=True),
        ),
    },
    undo={
        "recover-link": Undo("chaos.faults.ascend.undo:recover_link"),
        "see-chip": Undo("chaos.faults.ascend.undo:see_chip", after_processes=True),
    },
)
