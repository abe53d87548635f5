"""Scenario files: loaded, and each of their first cells planned. Documented: ScenarioError, in printable words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.names import KnownNames
from tests.fuzz.mutate import WORDS, mutate_bytes, mutate_lines
from tests.fuzz.target import Target

_CELLS = 3
_WORDS = (
    *WORDS,
    *(b"1000000000000", b"5s", b"99999999999999999999h", b"1e308s", b"0s", b"[0, 1, 2, 3]", b"[1, 1]", b"{rank: 0}"),
    *(b"${victim}", b"$${x}", b"{random: {count: 2}}", b"{all: [{step: 1}, {step: 2}]}", b"{after: kill-1}", b"none"),
    *(b"kill", b"uce", b"hcce", b"ecc", b"spike", b"pause", b"link", b"suspend", b"terminate", b"disk-full", b"TTP"),
    *(b"ARF", b"UCE", b"TRE", b"TSP", b"RSC", b"step.end", b"checkpoint.write", b"save_ckpt", b"outside", b"vendor"),
)


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Lines and words of scenarios more often than bytes."""
    if random.random() < 0.25:
        return mutate_bytes(random, corpus, _WORDS)
    return mutate_lines(random, corpus, _WORDS)


def check(content: bytes, folder: Path) -> None:
    """Load and plan."""
    path = folder / "fuzz.yaml"
    path.write_bytes(content)
    try:
        loaded = load_scenario(path, names=_names())
        for cell in islice(loaded.cells, _CELLS):
            plan_cell(loaded, cell, 0)
    except ScenarioError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.message
            assert all(line.isprintable() for line in str(problem).split("\n"))


@cache
def _names() -> KnownNames:
    return known_names()


TARGET = Target("scenario", mutate, check)
