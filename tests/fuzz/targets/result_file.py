"""result.json read back, compared and shown. Documented: ResultUnreadable."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from random import Random

from rich.console import Console

from chaos.report.compare import compare
from chaos.report.junit import write_junit
from chaos.report.result_file import FILE, ResultUnreadable, read_result, write_result
from chaos.report.side_by_side import print_comparison
from chaos.report.terminal import print_all, print_short
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.fuzz.target import Target


def mutate(random: Random, corpus: Sequence[bytes]) -> bytes:
    """Values more often than bytes."""
    if random.random() < 0.2:
        return mutate_bytes(random, corpus)
    return mutate_json(random, random.choice(corpus))


def check(content: bytes, folder: Path) -> None:
    """What is accepted can be written, shown and compared."""
    (folder / FILE).write_bytes(content)
    try:
        result = read_result(folder)
    except ResultUnreadable as error:
        assert FILE in str(error)
        return
    write_result(result, folder)
    write_junit(result, folder)
    console = Console(file=io.StringIO(), width=100)
    print_all(result, console, folder)
    print_short(result, console, folder)
    print_comparison(compare(result, result), console)


TARGET = Target("result_file", mutate, check)
