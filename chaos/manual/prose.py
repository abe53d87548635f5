"""Docstrings as Markdown."""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

from chaos.base.families import Member
from chaos.base.registry import registry

WIDTH = 118
_ROLE = re.compile(r":(?:mod|class|func|meth|attr):`~?([^`]+)`")
_OWN = "chaos."


def own_points(group: str) -> list[EntryPoint | Member]:
    """Return this package's entry points in a group, by name; those of other packages belong in their own pages."""
    points = registry(group).points.values()
    return sorted((point for point in points if point.module.startswith(_OWN)), key=lambda point: point.name)


def markdown(text: str | None) -> str:
    """Return a docstring in Markdown: code in single backticks, each paragraph filled anew."""
    plain = _ROLE.sub(r"`\1`", inspect.cleandoc(text or "")).replace("``", "`")
    return "\n\n".join(_filled(part) for part in plain.split("\n\n"))


def cell(text: str | None) -> str:
    """Return a docstring in one cell of a table."""
    return " ".join(markdown(text).split()).replace("|", "\\|")


def bullet(text: str) -> str:
    """Return a text as an item of a list."""
    return textwrap.fill(f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def module_doc(point: EntryPoint | Member) -> str:
    """Return the docstring of the module of an entry point, without the name that it begins with."""
    text = markdown(import_module(point.module).__doc__)
    head, _, rest = text.partition(": ")
    if not head.startswith("`") or not rest:
        return text
    return rest[0].upper() + rest[1:]


def doc_of(subject: Any, method: str) -> str:
    """Return the docstring of a method, as a cell; empty if there is no such method.

    A page names the returned thing, without the verb of the docstring.
    """
    text = cell(getattr(getattr(type(subject), method, None), "__doc__", None))
    returned = text.removeprefix("Return ")
    return returned[:1].upper() + returned[1:]


def _filled(paragraph: str) -> str:
    if paragraph.lstrip().startswith("- "):
        items = re.split(r"\n(?=- )", paragraph)
        return "\n".join(textwrap.fill(" ".join(item.split()), WIDTH, subsequent_indent="  ") for item in items)
    return textwrap.fill(" ".join(paragraph.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
