"""Made-up training data for a tiny language model: random tokens, the same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

LENGTH = 16
VOCABULARY = 64


def write_data(directory: Path, *, samples: int, seed: int) -> None:
    """Write one sample a line.

    ``train.jsonl`` has the columns of models of the new kind, ``tokens.jsonl`` the tokens alone, for legacy models.
    """
    draw = random.Random(seed)
    directory.mkdir(parents=True, exist_ok=True)
    drawn = [[draw.randrange(VOCABULARY) for _ in range(LENGTH + 1)] for _ in range(samples)]
    _write(directory / "tokens.jsonl", ({"input_ids": tokens} for tokens in drawn))
    _write(directory / "train.jsonl", (_columns(tokens) for tokens in drawn))


def _columns(tokens: list[int]) -> dict[str, list[int]]:
    return {
        "input_ids": tokens[:-1],
        "labels": tokens[1:],
        "loss_mask": [1] * LENGTH,
        "position_ids": list(range(LENGTH)),
    }


def _write(path: Path, samples: Iterable[dict[str, list[int]]]) -> None:
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples), "utf-8")
