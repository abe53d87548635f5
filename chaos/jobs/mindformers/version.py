"""Which MindFormers a job runs: that of a checkout, or the installed one. Nothing is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias

from chaos.jobs.mindformers.template import checked_keys

_ASSIGNED = re.compile(r"""^__version__\s*=\s*["'][rv]?(\d+)\.(\d+)""", re.MULTILINE)
_MOST = 1 << 18

Version: TypeAlias = tuple[int, int]

Chosen: TypeAlias = Literal["section", "top", "callback", "never"]
"""What chooses the new layout of checkpoints: the section ``checkpoint`` or ``use_legacy_format`` at the top (2.1), the
latter alone (1.8), that key of the callback (1.7); before there is none."""

_UNNUMBERED = (1, 0)
"""MindFormers 1.0 and older have no ``__version__``."""

_AT_THE_TOP = re.compile(r"^\s+use_legacy_format\s*=", re.MULTILINE)
_BY_CALLBACK = re.compile(r"^\s+ckpt_use_legacy_format\s*=", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """A MindFormers: the first two numbers of its version, None where it cannot be told, and how it reads layouts.

    Where nothing is known the newest is assumed. ``checked`` maps each section whose keys it checks to those that it
    has; empty where its sources are not here.
    """

    version: Version | None = None
    layout: Chosen = "section"
    checked: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def before(self, *version: int) -> bool:
        """Whether it is known to be older."""
        return self.version is not None and self.version < version

    @property
    def shown(self) -> str:
        """The version in messages, with the name."""
        return "MindFormers" if self.version is None else f"MindFormers {self.version[0]}.{self.version[1]}"


NEWEST = Release()


def release_of(checkout: Path | None) -> Release:
    """The MindFormers that a job runs: that of the checkout, or the installed one.

    Sources between two releases have the number of the one before, so a checkout is asked for the names of its keys
    (``tools/register/template.py``).
    """
    version, package = _version_of(checkout), _package(checkout)
    template = None if package is None else _text(package / "tools" / "register" / "template.py")
    if package is None or template is None:
        return Release(version, _layout_of(version))
    checked = checked_keys(template)
    if checkout is None:
        return Release(version, _layout_of(version), checked)
    if "def convert_checkpoint_config" in (_text(package / "trainer" / "utils.py") or ""):
        return Release(version, "section", checked)
    at_the_top, by_callback = _AT_THE_TOP.search(template), _BY_CALLBACK.search(template)
    return Release(version, "top" if at_the_top else "callback" if by_callback else "never", checked)


def _layout_of(version: Version | None) -> Chosen:
    if version is None or version >= (2, 0):
        return "section"
    if version >= (1, 8):
        return "top"
    return "callback" if version == (1, 7) else "never"


def _package(checkout: Path | None) -> Path | None:
    if checkout is not None:
        return checkout / "mindformers"
    try:
        return Path(str(metadata.distribution("mindformers").locate_file("mindformers")))
    except metadata.PackageNotFoundError:
        return None


def _version_of(checkout: Path | None) -> Version | None:
    if checkout is not None:
        text = _text(checkout / "mindformers" / "__init__.py")
        if text is None:
            return None
        found = _ASSIGNED.search(text)
        return _UNNUMBERED if found is None else (int(found[1]), int(found[2]))
    try:
        numbers = re.findall(r"\d+", metadata.version("mindformers"))
    except metadata.PackageNotFoundError:
        return None
    return (int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else None


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
