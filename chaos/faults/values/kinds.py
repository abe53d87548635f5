"""Values that are changed inside a rank."""

from __future__ import annotations

from chaos.faults.family import Family, Kind

FAMILY = Family(
    kinds={
        "flip-bit": Kind("chaos.faults.values.flip_bit:KIND", "chaos.faults.values.proof:CHANGED"),
        "nonfinite-loss": Kind("chaos.faults.values.nonfinite_loss:KIND", "chaos.faults.values.proof:CHANGED"),
        "spike": Kind(
            "chaos.faults.values.spike:KIND", "chaos.faults.values.proof_spike:SPIKE", parameters={"norm": 7.5}
        ),
        "wrong-batch": Kind("chaos.faults.values.wrong_batch:KIND", "chaos.faults.values.proof:CHANGED"),
    },
    rules="chaos.faults.values.plan:RULES",
)
