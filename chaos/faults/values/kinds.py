"""Values that are changed inside a rank."""

from __future__ import annotations

from chaos.faults.family import Family, Kind
from chaos.faults.values import proof, proof_spike

FAMILY = Family(
    kinds={
        "flip-bit": Kind("chaos.faults.values.flip_bit:KIND", proof.CHANGED),
        "nonfinite-loss": Kind("chaos.faults.values.nonfinite_loss:KIND", proof.CHANGED),
        "spike": Kind("chaos.faults.values.spike:KIND", proof_spike.SPIKE, parameters={"norm": 7.5}),
        "wrong-batch": Kind("chaos.faults.values.wrong_batch:KIND", proof.CHANGED),
    },
    rules="chaos.faults.values.plan:RULES",
)
