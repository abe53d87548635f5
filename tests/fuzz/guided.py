"""Lets coverage choose the inputs of a target, with atheris (extra ``fuzz``).

    python -m tests.fuzz.guided TARGET [--inputs 100000] [--keep DIRECTORY]

Inputs that reach new code are kept in the directory, by default a new one whose name is printed; those worth it become
seeds. An input that breaks the promise is written to the current directory, and its error printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

from tests.fuzz.swept import swept_directory
from tests.fuzz.target import MEMORY_FILES, SEEDS, limits, timed

_WITHOUT = ["chaos.rehearsal", "chaos.agent"]


def main() -> None:
    """Never returns: the engine ends the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, default=None)
    options = parser.parse_args()
    with atheris.instrument_imports(include=["chaos"], exclude=_WITHOUT):
        from tests.fuzz.drive import load

        target = load(options.target)
    corpus = target.corpus()
    keep = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-kept-"))
    folder = swept_directory("fuzz-", MEMORY_FILES)

    def check(content: bytes) -> None:
        with timed():
            target.check(content, folder)

    def mutate(content: bytes, size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.3:
            return bytes(atheris.Mutate(content, size))
        try:
            return target.mutate(random, [content, *corpus])[:size]
        except Exception:  # what the engine's own edits have made of a document may be none that can be edited
            return bytes(atheris.Mutate(content, size))

    arguments = [sys.argv[0], f"-runs={options.inputs}", "-max_len=65536", str(keep), str(SEEDS / target.name)]
    atheris.Setup(arguments, check, custom_mutator=mutate)
    with limits():
        atheris.Fuzz()


if __name__ == "__main__":
    main()
