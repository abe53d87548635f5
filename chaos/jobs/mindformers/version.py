"""The MindFormers that a job runs: of a checkout, or the installed one. Nothing is imported."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

from chaos.base.plain_files import UnreadableFile, read_plain
from chaos.jobs.mindformers.template import LARGEST, checked_keys

_ASSIGNED = re.compile(r"^__version__[ \t]*(?::[^=\n]*)?=(?!=)[ \t]*(.*)$", re.MULTILINE)
_QUOTED = re.compile(r"""["'][rv]?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])""")
_INSTALLED = re.compile(r"([0-9]{1,4})[^0-9]+([0-9]{1,4})(?![0-9])")
_MOST = 1 << 20
"""Largest source that is read: core/callback/callback.py has 190 KiB in 2.1."""

MONITOR = "CheckpointMonitor"
"""The callback that saves periodic checkpoints."""

_OLD_MONITOR = "CheckpointMointor"
"""Its name in MindFormers 1.0 and 1.1."""

_MONITORS = re.compile(rf"^class ({MONITOR}|{_OLD_MONITOR})\b", re.MULTILINE)

Version: TypeAlias = tuple[int, int]

Chosen: TypeAlias = Literal["section", "top", "callback", "never"]
"""The choice of the new layout of checkpoints: the section ``checkpoint`` or ``use_legacy_format`` at the top (2.1),
the latter alone (1.8), the same key of the callback (1.7); none before."""

_UNNUMBERED = (1, 0)
"""The version of a MindFormers package without a version: 1.0 and older."""

_AT_THE_TOP = re.compile(r"^[ \t]+use_legacy_format[ \t]*=", re.MULTILINE)
_BY_CALLBACK = re.compile(r"^[ \t]+ckpt_use_legacy_format[ \t]*=", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """A MindFormers: the first two numbers of its version, None if unknown, and its choice of layouts.

    An unknown version counts as the newest. ``checked`` maps each section with checked keys to its keys;
    empty if the sources are not available. ``monitors`` are its names of the callback that saves.
    """

    version: Version | None = None
    layout: Chosen = "section"
    checked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    monitors: frozenset[str] = frozenset({MONITOR})

    def before(self, *version: int) -> bool:
        """Return whether it is known to be older."""
        return self.version is not None and self.version < version

    @property
    def shown(self) -> str:
        """The version in messages, with the name."""
        return "MindFormers" if self.version is None else f"MindFormers {self.version[0]}.{self.version[1]}"


NEWEST = Release()


def release_of(checkout: Path | None) -> Release:
    """Return the MindFormers that a job runs: that of the checkout, or the installed one.

    Sources between two releases have the number of the earlier one, and so has the release 1.2: they are searched for
    the callback that saves (``core/callback/callback.py``), a checkout also for the names of its keys
    (``tools/register/template.py``).
    """
    package = _package(checkout)
    if package is None:
        return NEWEST
    monitors = frozenset(_MONITORS.findall(_text(package / "core" / "callback" / "callback.py") or ""))
    version = _version_of(checkout, renamed=monitors == {MONITOR})
    template = _text(package / "tools" / "register" / "template.py", LARGEST)
    layout = _layout_of(version) if checkout is None else _layout_in(package, template, version)
    checked = {} if template is None else checked_keys(template)
    return Release(version, layout, checked, monitors or _monitors_of(version))


def _layout_of(version: Version | None) -> Chosen:
    if version is None or version >= (2, 0):
        return "section"
    if version >= (1, 8):
        return "top"
    return "callback" if version == (1, 7) else "never"


def _layout_in(package: Path, template: str | None, version: Version | None) -> Chosen:
    trainer = _text(package / "trainer" / "utils.py")
    if trainer is not None and "def convert_checkpoint_config" in trainer:
        return "section"
    if template is None:
        older = (
            version is None and trainer is not None and not (package / "tools" / "register" / "template.py").exists()
        )
        return "never" if older else _layout_of(version)
    at_the_top, by_callback = _AT_THE_TOP.search(template), _BY_CALLBACK.search(template)
    return "top" if at_the_top else "callback" if by_callback else "never"


def _monitors_of(version: Version | None) -> frozenset[str]:
    if version is None or version > (1, 1):
        return frozenset({MONITOR})
    return frozenset({_OLD_MONITOR, MONITOR}) if version == (1, 1) else frozenset({_OLD_MONITOR})


def _package(checkout: Path | None) -> Path | None:
    if checkout is not None:
        return checkout / "mindformers"
    try:
        return Path(str(metadata.distribution("mindformers").locate_file("mindformers")))
    except metadata.PackageNotFoundError:
        return None


def _version_of(checkout: Path | None, *, renamed: bool) -> Version | None:
    """Return the version; ``renamed`` says that the callback that saves has the name of 1.2 and later."""
    if checkout is None:
        try:
            numbers = _INSTALLED.search(metadata.version("mindformers"))
        except metadata.PackageNotFoundError:
            return None
        return None if numbers is None else (int(numbers[1]), int(numbers[2]))
    text = _text(checkout / "mindformers" / "__init__.py")
    if text is None:
        return None
    assigned = _ASSIGNED.findall(text)
    if not assigned:
        return None if renamed or _tells_a_version(text) else _UNNUMBERED
    numbers_match = _QUOTED.match(assigned[-1])
    version = None if numbers_match is None else (int(numbers_match[1]), int(numbers_match[2]))
    return (1, 2) if renamed and version == (1, 1) else version


def _tells_a_version(text: str) -> bool:
    """Return whether any text but a comment, such as the license, mentions a version."""
    return any("version" in line.lower() for line in text.splitlines() if not line.lstrip().startswith("#"))


def _text(path: Path, most: int = _MOST) -> str | None:
    """Return the text of a plain file, or of a link's target; None if there is none, or it is too large."""
    try:
        return read_plain(Path(os.path.realpath(path)), most).decode("utf-8-sig", "replace")
    except (UnreadableFile, ValueError):
        return None
