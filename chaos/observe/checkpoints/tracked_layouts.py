"""Layouts of saves in which ``latest_checkpointed_iteration.txt`` names the newest one.

MindFormers and Megatron give this file the same name, and their directories other names. The directories beside a file
tell whose it is; without any, nobody knows. Sources: MindFormers 1.7 to 2.1, checkpoint/utils.py; Megatron-LM (core
0.16), megatron/training/checkpointing.py; MindSpeed-LLM writes its end-of-life checkpoints in Megatron's layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chaos.base.plain_files import UnreadableFile, read_plain
from chaos.observe.checkpoints.checkpoint_error import CheckpointError
from chaos.observe.checkpoints.mindformers_layout import ITERATION

MODEL_PARALLEL = re.compile(r"mp_rank_\d{2,9}(?:_\d{3,9}){0,2}")
"""Name of a directory in a save of Megatron: ranks of tensor, pipeline and expert parallelism, not of the job."""


@dataclass(frozen=True)
class TrackedLayout:
    """A layout of saves.

    ``about`` names the program, ``directory`` matches the name of a save's directory with its step, ``form`` writes it.
    ``words`` are texts in the tracker that name a directory of this name, which has no step. ``depth`` is the most
    directories from a checkpoint's file up to that directory.
    """

    about: str
    directory: re.Pattern[str]
    form: str
    depth: int
    words: frozenset[str] = frozenset()

    def name_of(self, tracked: int | str) -> str:
        """Return the name of the directory that a tracker names."""
        return tracked if isinstance(tracked, str) else self.form.format(tracked)

    def has(self, name: str) -> bool:
        """Return whether a directory of this name is a save's."""
        return name in self.words or self.directory.fullmatch(name) is not None


MINDFORMERS = TrackedLayout("MindFormers", ITERATION, "iteration_{:08d}", 1)
MEGATRON = TrackedLayout("Megatron", re.compile(r"iter_(?P<step>\d{7,18})"), "iter_{:07d}", 2, frozenset({"release"}))
LAYOUTS = (MINDFORMERS, MEGATRON)


@dataclass(frozen=True)
class TrackedSave:
    """The save that a file belongs to: the directory with its tracker, the save's own name, its step."""

    root: Path
    name: str
    step: int


def layout_beside(tracker: Path) -> TrackedLayout | None:
    """Return the layout of the saves beside a tracker; None where there are none, or of several layouts."""
    try:
        names = {path.name for path in tracker.parent.iterdir() if path.is_dir() and not path.is_symlink()}
    except OSError:
        return None
    # `release` is a common name: alone it says nothing.
    found = [layout for layout in LAYOUTS if any(layout.directory.fullmatch(name) for name in names)]
    if not found:
        found = [layout for layout in LAYOUTS if names & layout.words and _names_word(tracker, layout)]
    return found[0] if len(found) == 1 else None


def read_tracked(tracker: Path, layout: TrackedLayout) -> int | str:
    """Return the iteration, or the word, that a tracker names. Raises CheckpointError."""
    try:
        text = read_plain(tracker, 1000).decode("utf-8", "replace").strip()
    except UnreadableFile as error:
        raise CheckpointError(tracker, str(error.strerror)) from error
    if text in layout.words:
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise CheckpointError(tracker, f"{text[:40]!r} is no iteration")
    return int(text)


def save_of(file: Path) -> TrackedSave | None:
    """Return the save that a checkpoint's file belongs to, by the names of its directories; None for another file."""
    for layout in LAYOUTS:
        for directory in file.parents[: layout.depth]:
            if match := layout.directory.fullmatch(directory.name):
                return TrackedSave(directory.parent, directory.name, int(match["step"]))
    return None


def _names_word(tracker: Path, layout: TrackedLayout) -> bool:
    try:
        return isinstance(read_tracked(tracker, layout), str)
    except CheckpointError:
        return False
