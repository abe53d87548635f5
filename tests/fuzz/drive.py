"""Drives a target with inputs that hypothesis chooses the numbers of; on the command line until enough were checked.

    python -m tests.fuzz.drive --inputs 100000 --record fuzz.jsonl [TARGET]...

It can be interrupted: what was checked is on record, round by round, and the next call does the rest.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from importlib import import_module
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.target import MEMORY_FILES, Target, limits, timed

TARGETS = sorted(path.stem for path in (Path(__file__).parent / "targets").glob("[a-z]*.py"))

BATCH = 50
"""Inputs that are made from one number, one after the other: choosing a number costs more than checking an input."""

_ROUND = 1000


class BadInput(AssertionError):
    """An input for which the target's promise does not hold. The text says how to repeat it."""


def load(name: str) -> Target:
    """The target of that name."""
    target = import_module(f"tests.fuzz.targets.{name}").TARGET
    assert isinstance(target, Target) and target.name == name
    return target


def check_batch(target: Target, corpus: list[bytes], number: int, folder: Path, inputs: int = BATCH) -> None:
    """Check the inputs that this number stands for. Raises BadInput."""
    random = Random(number)
    for index in range(inputs):
        content = target.mutate(random, corpus)
        try:
            with timed():
                target.check(content, folder)
        except Exception as error:
            text = f"input {index} of check_batch(load({target.name!r}), …, {number}): {type(error).__name__}: {error}"
            raise BadInput(f"{text}\n{content[:2000]!r}") from error


def fuzz(name: str, inputs: int, *, derandomize: bool) -> int:
    """Check so many inputs or a few more, always the same with ``derandomize``. Returns how many. Raises BadInput."""
    target, corpus, done = load(name), load(name).corpus(), 0
    batch = min(BATCH, inputs)

    # Smaller numbers make no simpler inputs: nothing would be won by shrinking.
    @settings(
        max_examples=-(-inputs // batch),
        deadline=None,
        database=None,
        derandomize=derandomize,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64 - 1))
    def run(number: int) -> None:
        nonlocal done
        check_batch(target, corpus, number, Path(folder), batch)
        done += batch

    with tempfile.TemporaryDirectory(dir=MEMORY_FILES) as folder, limits():
        run()
    return done


def main() -> int:
    """Check what is missing of every target, in turns; a target with bad input is left. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs for each target")
    parser.add_argument("--record", type=Path, required=True, help="file that remembers what was checked")
    options = parser.parse_args()
    waiting = list(options.targets or TARGETS)
    bad: list[BadInput] = []
    while waiting:
        name = waiting.pop(0)
        if (missing := options.inputs - _checked(options.record, name)) <= 0:
            continue
        began = time.process_time()
        try:
            done = fuzz(name, min(_ROUND, missing), derandomize=False)
        except BadInput as error:
            bad.append(error)
            print(error, flush=True)
            continue
        line = {"target": name, "inputs": done, "processor_seconds": round(time.process_time() - began, 2)}
        with options.record.open("a") as record:
            record.write(json.dumps(line) + "\n")
        waiting.append(name)
    for name in options.targets or TARGETS:
        print(f"{name}: {_checked(options.record, name)} inputs")
    return 1 if bad else 0


def _checked(record: Path, name: str) -> int:
    lines = record.read_text().splitlines() if record.exists() else []
    return sum(one["inputs"] for one in map(json.loads, lines) if one["target"] == name)


if __name__ == "__main__":
    raise SystemExit(main())
