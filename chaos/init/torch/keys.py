"""The keys of a scenario that a script of PyTorch or the line of its launcher says: shards, nodes and interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from chaos.init.entries import Entry
from chaos.init.launch_lines import LaunchLine
from chaos.init.own_launch import WHERE
from chaos.init.torch.exports import Export
from chaos.init.torch.shards import Shards


def shard_entries(shards: Shards, ranks: int) -> tuple[dict[str, Entry], Entry | None]:
    """Return the parallel sizes, or an entry that says why none of them is known."""
    if not shards.kind:
        return {}, Entry("left out", f"{shards.where}: {shards.unclear}: full or optimizer, if it is", guessed=True)
    copies = shards.copies(ranks)
    why = shards.where
    if copies is None:
        why = f"{why}: say copies if several: {shards.unclear or 'the mesh does not fit the ranks'}"
    sizes = {
        "data_parallel": Entry(ranks, "all ranks"),
        "shard": Entry(shards.kind, why, guessed=copies is None),
    }
    if copies is not None and copies > 1:
        sizes["copies"] = Entry(copies, "the mesh of copies by shards")
    return sizes, None


def nodes_entry(line: LaunchLine | None, ranks: int) -> Entry | None:
    """Return the number of nodes; None for a single node, and where they do not hold equally many ranks."""
    if line is None or line.nodes is None or ranks % line.nodes:
        return None
    return Entry(line.nodes, f"{line.where}, {line.launcher}: nodes of this host, with a network between them")


def python_entry(line: LaunchLine | None) -> Entry | None:
    """Return the interpreter that a launch line names; None where it is that of the harness.

    The plan asks an interpreter for its releases. So an interpreter that a file of the job names, and not the user, is
    a guess, which the scenario holds as a comment; so is an interpreter that is not on this machine.
    """
    if line is None or line.python is None or _is_own(line.python):
        return None
    here = line.python.is_file() and os.access(line.python, os.X_OK)
    why = f"{line.where} names it" + ("" if here else ", and it is not on this machine")
    return Entry(str(line.python), why, guessed=not here or line.where != WHERE)


def exports_entry(exports: Sequence[Export]) -> Entry | None:
    """Return the names of the files that no line of the script loads; None where it saves none."""
    names = dict.fromkeys(name for export in exports for name in export.names)
    where = "; ".join(export.save.where for export in exports)
    return Entry(tuple(names), f"{where}: no line loads it") if names else None


def _is_own(python: Path) -> bool:
    """Return whether a path is the harness's Python: the same file in the same environment, whatever its link."""
    own = Path(sys.executable)
    return python.parent.resolve() == own.parent.resolve() and python.resolve() == own.resolve()
