"""The output of the command that runs the cells of one test."""

from __future__ import annotations

from chaos.api.answer import Answer, read_answer
from chaos.api.errors import ChaosError
from chaos.pytest_plugin.outcomes import NoVerdict


def read_output(name: str, cells: int, status: int, output: str, errors: str) -> Answer:
    """Return the results of the cells that ran, and their comparison. Raises NoVerdict if the run gave none."""
    try:
        return read_answer(name, cells, cells - 1, status, output, errors)
    except ChaosError as error:
        raise NoVerdict(str(error).splitlines()) from None
