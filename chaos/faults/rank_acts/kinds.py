"""Acts of a rank on itself."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "abort": Kind(
            "chaos.faults.rank_acts.abort:KIND",
            "chaos.faults.rank_acts.proofs:OWN_END",
            Effect(signal=6, by_itself=True),
        ),
        "clock-skew": Kind("chaos.faults.rank_acts.clock_skew:KIND", "chaos.faults.rank_acts.proofs:SKEW"),
        "data-stall": Kind("chaos.faults.rank_acts.data_stall:KIND", "chaos.faults.rank_acts.proofs:HANG"),
        "exit": Kind(
            "chaos.faults.rank_acts.exit:KIND",
            "chaos.faults.rank_acts.proofs:OWN_END",
            Effect(code="code", by_itself=True),
        ),
        "hang": Kind("chaos.faults.rank_acts.hang:KIND", "chaos.faults.rank_acts.proofs:HANG"),
        "hold-gil": Kind("chaos.faults.rank_acts.hold_gil:KIND", "chaos.faults.rank_acts.proofs:HANG"),
        "oom": Kind(
            "chaos.faults.rank_acts.oom:KIND", "chaos.faults.rank_acts.proofs:OOM", Effect(signal=9, by_itself=True)
        ),
        "segfault": Kind(
            "chaos.faults.rank_acts.segfault:KIND",
            "chaos.faults.rank_acts.proofs:OWN_END",
            Effect(signal=11, by_itself=True),
        ),
        "slow-rank": Kind("chaos.faults.rank_acts.slow_rank:KIND", "chaos.faults.rank_acts.proofs:SLOW"),
    },
    undo={
        "remove-memory-group": Undo("chaos.faults.rank_acts.undo:remove_memory_group", after_processes=True),
    },
    rules="chaos.faults.rank_acts.plan:RULES",
)
