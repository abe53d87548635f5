"""Configurations of MindFormers jobs, read and planned. Documented: ScenarioError, in printable words.

What is read is what PyYAML's safe loader reads, and what that refuses is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from chaos.jobs.mindformers.yaml_file import read_yaml
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.names import KnownNames
from tests.fuzz.mutate import WORDS, mutate_bytes, mutate_lines
from tests.fuzz.target import Target

_SCENARIO = """\
chaos: 1
name: fuzz
job: {kind: mindformers, config: fuzz-job.yaml, steps: 12, protection: [TTP, TRE], overrides: {seed: 1}}
faults: [{kind: kill, target: {rank: 1}, trigger: {step: 6}}]
"""

_WORDS = (
    *WORDS,
    *(b"True", b"on", b"010", b"1e-5", b"0b11", b"1:30", b"2001-02-31", b"~", b"O2", b"CPU", b"PYNATIVE_MODE", b"-1"),
    *(
        b"*base",
        b"&base {a: 1}",
        b"<<: *base",
        b"base_config: fuzz-job.yaml",
        b"base_config: [",
        b"!!str 5",
        b"!!set {a}",
    ),
    *(
        b"CheckpointMonitor",
        b"checkpoint:",
        b"callbacks: 5",
        b"parallel_mode: 0",
        b"- type: CheckpointMonitor",
        b"=",
        b"? a",
    ),
)


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Lines and words of configurations more often than bytes."""
    if random.random() < 0.25:
        return mutate_bytes(random, corpus, _WORDS)
    return mutate_lines(random, corpus, _WORDS)


def check(content: bytes, folder: Path) -> None:
    """Read, compare with the safe loader, load and plan."""
    path = folder / "fuzz-job.yaml"
    path.write_bytes(content)
    (folder / "fuzz.yaml").write_text(_SCENARIO)
    read: Any = None
    with suppress(ScenarioError):
        read = read_yaml(path).plain()
    assert read is None or _same(read, yaml.safe_load(content.decode()))
    try:
        loaded = load_scenario(folder / "fuzz.yaml", names=_names())
        plan_cell(loaded, loaded.cells[0], 0)
    except ScenarioError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.message
            assert all(line.isprintable() for line in str(problem).split("\n"))


def _same(one: Any, other: Any) -> bool:
    """Equal, and of the same types; a number that is none equals itself here."""
    return repr(one) == repr(other)


@cache
def _names() -> KnownNames:
    return known_names()


TARGET = Target("mindformers", mutate, check)
