"""plan.json of a run. Documented: PlanFormatError."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.plan.io import PlanFormatError, dumps, loads
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Values of plans more often than bytes."""
    if random.random() < 0.2:
        return mutate_bytes(random, corpus)
    return mutate_json(random, random.choice(corpus))


def check(content: bytes, folder: Path) -> None:
    """Read it. What is accepted comes back equal from what is written of it."""
    del folder
    try:
        plan = loads(content)
    except PlanFormatError:
        return
    assert loads(dumps(plan)) == plan


TARGET = Target("plan", mutate, check)
