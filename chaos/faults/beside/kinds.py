"""Processes of the harness beside a job."""

from __future__ import annotations

from chaos.faults.family import Family, Undo

FAMILY = Family(
    undo={
        "switch-off": Undo("chaos.faults.beside.undo:end_beside"),
    },
)
