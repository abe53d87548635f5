"""Ranks of a launcher that is not msrun, recognised by variables of their environment.

The launch carries the names of these variables itself, in CHAOS_RANKS: pairs ``NUMBER/SIZE``, separated by commas. So
every process of the launch, and everybody who looks at one, reads the same. The agent and the remote helper use this:
standard library only, Python 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping

VARIABLE = "CHAOS_RANKS"

KNOWN = (
    ("RANK_ID", "RANK_SIZE"),
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables with the number of a rank and of all ranks: MindSpore's, torchrun's, Open MPI's, MPICH's and Slurm's."""


def written(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return the value of CHAOS_RANKS for these pairs of variables."""
    return ",".join("/".join(pair) for pair in pairs)


def pairs_of(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of variables that CHAOS_RANKS names; none where the launcher is msrun."""
    pairs = (part.partition("/") for part in environment.get(VARIABLE, "").split(",") if part)
    return tuple((number, size) for number, _, size in pairs)


def place_by(environment: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Return the number of the rank and of all ranks; the second is None where no variable has it.

    None for a process without a number, and where two variables name different ranks.
    """
    numbers, sizes = set(), set()
    for number, size in pairs_of(environment):
        if (rank := _whole(environment.get(number))) is not None:
            numbers.add(rank)
            if (ranks := _whole(environment.get(size))) is not None:
                sizes.add(ranks)
    if len(numbers) != 1:
        return None
    return numbers.pop(), sizes.pop() if len(sizes) == 1 else None


def without_ranks(environment: Mapping[str, str], names: str) -> dict[str, str]:
    """Return an environment without the variables that ``names``, a value of CHAOS_RANKS, counts ranks by.

    A shell, or a container, may have them from another job: each process of the launch would claim that rank.
    """
    gone = {name for pair in pairs_of({VARIABLE: names}) for name in pair}
    return {name: value for name, value in environment.items() if name not in gone}


def _whole(value: str | None) -> int | None:
    return int(value) if value and value.isascii() and value.isdecimal() else None
