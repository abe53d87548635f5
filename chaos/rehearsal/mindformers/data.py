"""Made-up training data for a tiny language model: random tokens, the same for the same seed."""

from __future__ import annotations

import json
import random
from pathlib import Path

LENGTH = 16
VOCABULARY = 64


def write_data(path: Path, *, samples: int, seed: int) -> None:
    """Write one sample a line, with the columns that MindFormers' models of the new kind take."""
    draw = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(samples):
            tokens = [draw.randrange(VOCABULARY) for _ in range(LENGTH + 1)]
            sample = {
                "input_ids": tokens[:-1],
                "labels": tokens[1:],
                "loss_mask": [1] * LENGTH,
                "position_ids": list(range(LENGTH)),
            }
            file.write(json.dumps(sample) + "\n")
