"""Choosing the script to train among those of a directory."""

from __future__ import annotations

from pathlib import Path

from chaos.base.refusal import Refused
from chaos.init.entries import Ask
from chaos.init.source import shown
from chaos.init.survey import Candidate, candidates

_MOST_LISTED = 12


def choose_script(directory: Path, named: Path | None, ask: Ask | None) -> Path:
    """Return the script: the named one, or the only one that trains. Raises Refused where that is not clear."""
    if named is not None:
        for path in (directory / named, named):
            if path.is_file():
                return path.absolute()
        raise Refused(f"--script: there is no file {directory / named}")
    scripts = candidates(directory)
    if not scripts:
        raise Refused(_none(directory))
    if len(scripts) == 1:
        return scripts[0].path
    listed = _listed(scripts, directory)
    if ask is None:
        raise Refused(f"{len(scripts)} scripts of {directory} may be the one; say which with --script:\n{listed}")
    answer = ask(f"Which script?\n{listed}\n", shown(scripts[0].path, directory)).strip()
    chosen = next(
        (script.path for script in scripts if answer in (shown(script.path, directory), script.path.name)), None
    )
    if chosen is None:
        raise Refused(f"{answer!r} is none of these scripts:\n{listed}")
    return chosen


def _listed(scripts: list[Candidate], directory: Path) -> str:
    lines = [f"  {shown(script.path, directory)}  ({script.why})" for script in scripts[:_MOST_LISTED]]
    more = len(scripts) - _MOST_LISTED
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])


def _none(directory: Path) -> str:
    scripts = sorted(path.name for path in directory.glob("*.py"))[:_MOST_LISTED]
    seen = (
        f"its Python files, {', '.join(scripts)}, neither call Model.train nor have a training loop" if scripts else ""
    )
    return (
        f"no training script was found in {directory}: {seen or 'it has no Python file'}, and no shell script there "
        "starts one with msrun; name it with --script FILE, or see an example: chaos init --example"
    )
