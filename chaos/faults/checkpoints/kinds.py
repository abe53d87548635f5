"""Faults of checkpoints that were saved."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo

FAMILY = Family(
    kinds={
        "damage-record": Kind("chaos.faults.checkpoints.damage_record:KIND", "chaos.faults.checkpoints.proof:DAMAGED"),
        "flip-checkpoint": Kind(
            "chaos.faults.checkpoints.flip_checkpoint:KIND", "chaos.faults.checkpoints.proof:DAMAGED"
        ),
        "lose-checkpoint": Kind("chaos.faults.checkpoints.lose_checkpoint:KIND", "chaos.faults.checkpoints.proof:LOST"),
        "partial-checkpoint": Kind(
            "chaos.faults.checkpoints.partial_checkpoint:KIND", "chaos.faults.checkpoints.proof:DAMAGED"
        ),
        "remove-checkpoint": Kind(
            "chaos.faults.checkpoints.remove_checkpoint:KIND", "chaos.faults.checkpoints.proof:DAMAGED"
        ),
        "rename-checkpoint": Kind(
            "chaos.faults.checkpoints.rename_checkpoint:KIND", "chaos.faults.checkpoints.proof:RENAMED"
        ),
        "stale-checkpoint": Kind(
            "chaos.faults.checkpoints.stale_checkpoint:KIND", "chaos.faults.checkpoints.proof:DAMAGED"
        ),
        "truncate-checkpoint": Kind(
            "chaos.faults.checkpoints.truncate_checkpoint:KIND", "chaos.faults.checkpoints.proof:DAMAGED"
        ),
    },
    undo={
        "restore-checkpoint": Undo(
            "chaos.faults.checkpoints.undo:restore_checkpoint", after_processes=True, after_launches=True
        ),
        "restore-checkpoint-adopted": Undo("chaos.faults.checkpoints.undo:restore_checkpoint_adopted"),
        "note-kept": Undo("chaos.faults.checkpoints.undo:note_kept"),
    },
    rules="chaos.faults.checkpoints.plan:RULES",
)
