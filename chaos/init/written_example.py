"""The example of ``chaos init --example``: a small job that works at once, with MindSpore or without it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.init.place import write_new
from chaos.init.survey import FRAMEWORK

DIRECTORY = "chaos-example"
"""Where the example is written if the user names no directory."""

_FILES = Path(__file__).parent / "example"
_JOB = {"train.py": 0o644, "run.sh": 0o755}
WITHOUT = "plain.yaml"


def has_framework() -> bool:
    """Return whether MindSpore is installed beside chaos."""
    return importlib.util.find_spec(FRAMEWORK) is not None


def write_example(directory: Path, *, with_framework: bool, force: bool) -> list[Path]:
    """Write the files of the example, without its scenario where chaos init works it out. Raises Refused."""
    files = _JOB if with_framework else {WITHOUT: 0o644}
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{directory} cannot be made: {error.strerror}") from error
    there = [name for name in files if (directory / name).exists()]
    if there and not force:
        raise Refused(f"{directory / there[0]} is there already, and nothing was written: name another directory")
    for name, mode in files.items():
        write_new(directory / name, (_FILES / name).read_text(encoding="utf-8"), force=force, mode=mode)
    return [directory / name for name in files]
