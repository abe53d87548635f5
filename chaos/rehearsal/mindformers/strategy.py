"""The parallel strategy by which MindFormers finds the end-of-life checkpoint that a rank may load.

On Ascend MindSpore's compiler writes a file for each rank where weights can be sliced (``semi_auto_parallel``). On a
CPU all ranks hold the same weights and it writes none, so these stand in: one parameter, whole on every rank. The
format is that of MindSpore 2.10 (``node_strategy.proto``, ``ParallelStrategyMap``).
"""

from __future__ import annotations

from pathlib import Path

MOST_RANKS = 127
"""Ranks whose number takes one byte in the file."""


def write_strategies(directory: Path, ranks: int) -> None:
    """Write ``ckpt_strategy_rank_R.ckpt`` of every rank, where there is none."""
    directory.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        file = directory / f"ckpt_strategy_rank_{rank}.ckpt"
        if not file.exists():
            file.write_bytes(strategy_of(ranks))


def strategy_of(ranks: int) -> bytes:
    """Return a strategy in which ``ranks`` ranks hold all of a parameter. Raises ValueError above 127 ranks."""
    if not 1 <= ranks <= MOST_RANKS:
        raise ValueError(f"a strategy for {ranks} ranks: 1 to {MOST_RANKS} can be written")
    devices = _part(1, _number(1, ranks))
    nowhere = _part(2, b"\x08" + b"\xff" * 9 + b"\x01")  # tensor_map: -1, not cut along its dimension
    layout = devices + nowhere + _number(5, 0) + _number(6, 0) + _number(7, 0)
    parameter = _part(1, b"w") + _part(2, layout)
    return _number(1, 0) + _part(3, parameter)


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3, value])


def _part(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2, len(content)]) + content
