"""Data of the report page of a large run: 1,024 ranks on 128 nodes, 10,000 steps, and a node that lost its power."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.kit.pages.page_data import Data, cell, mark, passing, process, span


def large(ranks: int = 1024, per_node: int = 8, blocks: int = 70) -> Data:
    """Return the data of a run of many ranks and 10,000 steps, in blocks of steps as the page has them."""
    draw = random.Random(7)
    data = passing()
    data["run"], data["seconds"] = "kill-node-of-128-20261127-081200-77aa", 5200.0
    rows = [_large_row(rank, per_node, blocks, draw) for rank in range(ranks)]
    harness = [mark(3000.0, "fault", "node 40 lost its power"), mark(3000.2, "launch", "attempt resume")]
    planned = data["timeline"]["planned"][0] | {"t": 3000.0, "ranks": list(range(320, 328)), "step": 5790}
    phases = [{"name": "detection", "begin": 3000.0, "end": 3030.0}, {"name": "save", "begin": 3030.0, "end": 3080.0}]
    states = [{"name": "DUMP", "begin": 3030.0, "end": 3080.0, "text": "DUMP (logs/train/ttp_log.log.9000:11)"}]
    data["timeline"] = {"rows": rows, "harness": harness, "planned": [planned], "phases": phases, "states": states}
    steps = list(range(1, 10_001))
    series = {
        "loss": [9 / (1 + step / 800) + draw.gauss(0, 0.02) for step in steps],
        "norm": [1.5 + draw.gauss(0, 0.1) for _ in steps],
        "step_seconds": [0.51 + abs(draw.gauss(0, 0.01)) for _ in steps],
    }
    data["curves"] |= {"steps": steps, "run": series, "baseline": copy.deepcopy(series)}
    data["curves"]["faults"] = [{"step": 5790, "text": "kill node 40"}]
    groups = [list(range(first, ranks, ranks // 8)) for first in range(ranks // 8)]
    cells = [
        cell(rank, step, list(range(rank, rank + 1)) if step == 5789 else [])
        for rank in range(ranks)
        for step in (2000, 4000, 5789)
    ]
    data["checkpoints"] = {
        "steps": [2000, 4000, 5789],
        "ranks": list(range(ranks)),
        "groups": groups,
        "cells": cells,
        "note": "",
    }
    return data


def _large_row(rank: int, per_node: int, blocks: int, draw: random.Random) -> Data:
    hit = rank // per_node == 40
    steps = list(_blocks(blocks, 60.0, 3000.0, 5789, draw))
    after = list(_blocks(blocks, 3300.0, 5150.0, 4211, draw, first=5790))
    spans = [span("start", 1.0, 60.0, "start"), span("save", 1500.0, 1530.0, "periodic checkpoint of step 2000")]
    if not hit:
        spans.append(span("save", 3030.0, 3080.0, "end-of-life checkpoint of step 5789"))
    end = 3000.0 if hit else 3090.0
    resumed = [span("start", 3100.0, 3250.0, "start"), span("load", 3250.0, 3300.0, "load")]
    text = "SIGKILL" if hit else "code 1"
    return {
        "label": f"rank {rank}",
        "rank": rank,
        "node": rank // per_node,
        "group": rank % 128,
        "processes": [
            process("train", 9000 + rank, 1.0, end, text, steps, spans, [mark(end, "exit", text)]),
            process("resume", 19000 + rank, 3100.0, 5160.0, "code 0", after, resumed, []),
        ],
    }


def _blocks(
    blocks: int, begin: float, end: float, steps: int, draw: random.Random, first: int = 1
) -> Iterator[list[Any]]:
    each, seconds = steps / blocks, (end - begin) / blocks
    for index in range(blocks):
        at = begin + index * seconds + draw.random() * 0.05
        yield [first + round(index * each), first + round((index + 1) * each) - 1, round(at, 6), round(at + seconds, 6)]
