"""Reasons why the runs of a job differ, and ways to make them equal: from the first difference, and from the script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chaos.calibration.noise import Unequal

_ROUNDING = 1e-4
"""A relative difference of the first loss below this is of the size of rounding, not of other random draws."""

_WORDS = {
    "start": "the weights differ before the first step, at rank {rank}: {name}",
    "batch": "the batches differ, first at rank {rank}, step {step}",
    "loss": "the losses differ, first at rank {rank}, step {step}, with equal batches before: by {size:.1e} relative",
    "state": "weights or optimizer state differ, first at rank {rank}, step {step}, with an equal loss: {name}",
}

_SEEDS = "mindspore.set_seed(N) before the network is made, and seeds for numpy.random and random where they are used"
_DATA = (
    "mindspore.dataset.config.set_seed(N), or shuffle=False; num_parallel_workers=1 where a worker draws at random; no "
    "order of files that the file system decides"
)
_SUMS = (
    "mindspore.set_deterministic(True) (in older releases set_context(deterministic='ON')), HCCL_DETERMINISTIC=true on "
    "Ascend, as many threads in every run (OMP_NUM_THREADS), pynative_synchronize=True"
)

_SIGNS = (
    ("seed", re.compile(r"\bset_seed\s*\(|\bmanual_seed\s*\(|\brandom\.seed\s*\(|default_rng\s*\(\s*\d")),
    ("determinism", re.compile(r"\bset_deterministic\s*\(|\bdeterministic\s*=")),
    ("random layer", re.compile(r"\b[Dd]rop(?:out|path)\w*\s*\(", re.IGNORECASE)),
    ("shuffle", re.compile(r"\bshuffle\s*=")),
    ("data workers", re.compile(r"\b(?:num_parallel_workers|python_multiprocessing)\s*=")),
)
_MOST_LINES = 3


def cause(first: Unequal) -> str:
    """Return the first difference in words."""
    return _WORDS[first.what].format(**{**first._asdict(), "size": first.size or 0.0})


def remedies(first: Unequal) -> Iterator[str]:
    """Yield what would make the runs equal, the probable remedy first."""
    if first.what == "start":
        yield f"seeds: {_SEEDS}"
    elif first.what == "batch":
        yield f"data: {_DATA}"
    elif first.what == "loss" and first.size is not None and first.size >= _ROUNDING:
        yield f"random layers draw other numbers; {_SEEDS}, and a state of the generator in the checkpoint"
        yield f"sums: {_SUMS}"
    else:
        yield f"sums in another order; {_SUMS}"


def signs(script: str) -> Iterator[str]:
    """Yield the lines of a script that have to do with it. The script is data: it is not run."""
    lines = script.splitlines()
    for name, pattern in _SIGNS:
        numbers = [str(number) for number, line in enumerate(lines, 1) if pattern.search(line.partition("#")[0])]
        more = ", …" if len(numbers) > _MOST_LINES else ""
        yield f"{name}: line {', '.join(numbers[:_MOST_LINES])}{more}" if numbers else f"{name}: no line"
