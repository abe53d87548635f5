"""ConfigMaps that name quarantined cards. Documented: UnreadableOutput."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from chaos.machine.ascend.quarantine import read_manual, read_plugin
from chaos.machine.ascend.unreadable import UnreadableOutput
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Changed as JSON, or as bytes."""
    return mutate_bytes(random, corpus) if random.random() < 0.3 else mutate_json(random, random.choice(list(corpus)))


def check(content: bytes, folder: Path) -> None:
    """Read it as both."""
    del folder
    text = content.decode("utf-8", "replace")
    for read in (read_plugin, read_manual):
        try:
            cards = read(text, "worker-1")
        except UnreadableOutput as error:
            assert len(str(error)) < 2000
            continue
        assert all(card.isascii() and "-" in card for card in cards)


TARGET = Target("quarantine", mutate, check)
