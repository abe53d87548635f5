"""Registries: faults, jobs, mechanisms, platforms, checks and readers by name, filled by entry points.

A package adds a member by declaring an entry point; the built-in members are declared in this project's own
pyproject.toml and come the same way. Names are known without importing the objects; an object is imported when it is
asked for. Kinds of faults, their proofs, effects, undo actions and plan rules come by families
(:mod:`chaos.base.families`): each family lists its own.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint
from typing import Any, TypeAlias

from chaos.base.families import FAMILIES, BrokenFamily, Member, is_filled_by_families, members
from chaos.base.retired import retired_attributes, retired_keywords

DISTRIBUTION = "chaos-ascend"
_PAGE = "docs/guides/extending.md in the repository"
REINSTALL = "run `pip install -e .` in the repository (or install the package again) and try once more"


_NAME = re.compile(r"\A(?:\S.*\n)*?Name: *(\S+) *$", re.MULTILINE)
"""The name among the headers of a package's metadata; an empty line ends them."""


class RegistryError(Exception):
    """A registry cannot return the requested object. The text says what to do."""


class UnknownName(RegistryError):
    """No object of that name is registered."""


def installed_points(group: str, distributions: Iterable[Distribution] | None = None) -> list[EntryPoint]:
    """Return the entry points of a group, of every installed distribution.

    A build leaves an ``.egg-info`` directory beside the sources. It is on the path when the repository is the current
    directory, it may be stale, and :func:`importlib.metadata.entry_points` would prefer it to pip's installation. Here
    it counts only where pip has installed nothing of that name. ``distributions`` replaces the installed distributions.
    """
    pointed = _on_path(tuple(sys.path)) if distributions is None else _with_points(distributions)
    installed: dict[str, list[EntryPoint]] = {}
    beside: dict[str, list[EntryPoint]] = {}
    for distribution, groups in pointed:
        if points := groups.get(group):
            listed = installed if _is_installed_by_pip(distribution) else beside
            listed.setdefault(_name_of(distribution), points)
    for distribution, _ in pointed if beside else ():  # a distribution that no longer has such a group counts as well
        if _is_installed_by_pip(distribution):
            beside.pop(_name_of(distribution), None)
    return [point for points in {**beside, **installed}.values() for point in points]


Pointed: TypeAlias = tuple[Distribution, Mapping[str, list[EntryPoint]]]
"""A distribution, and its entry points by their group."""


@cache
def _on_path(path: tuple[str, ...]) -> list[Pointed]:
    """Return the distributions on the path of this process; looked up once for all groups."""
    return _with_points(metadata.distributions(path=list(path)))


def _with_points(distributions: Iterable[Distribution]) -> list[Pointed]:
    pointed: list[Pointed] = []
    for distribution in distributions:
        groups: dict[str, list[EntryPoint]] = {}
        # Most packages bring nothing: a look at the text is faster than a parser.
        brings = "[chaos." in (distribution.read_text("entry_points.txt") or "")
        for point in distribution.entry_points if brings else ():
            groups.setdefault(point.group, []).append(point)
        pointed.append((distribution, groups))
    return pointed


@cache
def _name_of(distribution: Distribution) -> str:
    """Return the distribution's name.

    A look at the text is faster than a parser, which reads a whole README for it, and nearly every name is found so.
    """
    named = _NAME.search(_metadata(distribution) or "")
    return _plain(named[1] if named else distribution.metadata["Name"])


def _is_installed_by_pip(distribution: Distribution) -> bool:
    return _metadata(distribution) is not None


@cache
def _metadata(distribution: Distribution) -> str | None:
    """Return what pip has written about an installed distribution; None for one that it has not installed."""
    return distribution.read_text("METADATA")


def _plain(name: str) -> str:
    """Return a distribution's name as pip compares it."""
    return name.lower().replace("_", "-")


def _is_installed() -> bool:
    try:
        metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return False
    return True


@dataclass(frozen=True)
class Registry:
    """The objects of one entry point group.

    ``group`` is the group's name, ``noun`` the word for one member in messages. ``source`` lists the entry points of a
    group and ``installed`` says whether this project's own metadata is there; both are replaced in tests.
    """

    group: str
    noun: str
    source: Callable[[str], Iterable[EntryPoint]] = installed_points
    installed: Callable[[], bool] = _is_installed

    @cached_property
    def _of_families(self) -> list[Member | BrokenFamily]:
        families = self.source(FAMILIES) if is_filled_by_families(self.group) else ()
        return list(members(self.group, families))

    @cached_property
    def built_in(self) -> dict[str, EntryPoint | Member]:
        """This project's own members, by name."""
        return {point.name: point for point in self._all() if _is_own(point)}

    def _all(self) -> list[EntryPoint | Member]:
        added = [member for member in self._of_families if isinstance(member, Member)]
        return [*added, *self.source(self.group)]

    @cached_property
    def points(self) -> dict[str, EntryPoint | Member]:
        """Members by name. Raises RegistryError when two packages claim one name for different objects."""
        points: dict[str, EntryPoint | Member] = {}
        for point in self._all():
            other = points.setdefault(point.name, point)
            if other.value != point.value:
                raise RegistryError(
                    f"two packages register the {self.noun} {point.name!r}: {other.value} and {point.value}; "
                    f"uninstall one of them (entry point group {self.group})"
                )
        return points

    def names(self) -> tuple[str, ...]:
        """Return the registered names, sorted. Imports no object. Raises RegistryError as :attr:`points` does."""
        return tuple(sorted(self.points))

    def whole_names(self) -> tuple[str, ...]:
        """Return the same as :meth:`some_names`, for requests to every family.

        It also raises RegistryError where a family of this project cannot be imported. Such a request does not depend
        on the kinds of faults in a scenario.
        """
        broken = [error for error in self._of_families if isinstance(error, BrokenFamily) and _is_own(error)]
        if broken:
            raise RegistryError(f"{'; '.join(map(str, broken))}; {REINSTALL}")
        return self.some_names()

    def some_names(self) -> tuple[str, ...]:
        """Return the same as :meth:`names`; raise RegistryError, with advice, where nothing is registered."""
        if not self.points:
            raise RegistryError(self._empty())
        return self.names()

    def load(self, name: str) -> Any:
        """Import the object called ``name``.

        Raises UnknownName, with the name that was probably meant, and RegistryError when its module cannot be imported
        or lacks the object.
        """
        point = self.built_in.get(name) or self.points.get(name)
        if point is None:
            raise UnknownName(self._unknown(name))
        try:
            loaded = point.load()
        except (ImportError, AttributeError) as error:
            raise RegistryError(
                f"the {self.noun} {name!r} is registered as {point.value}, which cannot be loaded: {error}; {REINSTALL}"
            ) from error
        except TypeError as error:  # an object of another release: it gives what this one does not take
            if _is_own(point):
                raise
            advice = "; ".join(retired_keywords(self.group, error)) or "it is made for another release of chaos"
            raise RegistryError(f"{self._origin(point)}, which cannot be made: {error}; {advice}") from error
        if not _is_own(point) and (retired := list(retired_attributes(self.group, loaded))):
            raise RegistryError(f"{self._origin(point)}: {'; '.join(retired)} ({_PAGE})")
        return loaded

    def _origin(self, point: EntryPoint | Member) -> str:
        """Return the words for a member of another package: where it is, and the package."""
        package = "an unknown package" if point.dist is None else f"the package {point.dist.name}"
        return f"the {self.noun} {point.name!r} of {package} is registered as {point.value}"

    def misfit(self, name: str, base: str) -> RegistryError:
        """Return the error that the object called ``name`` does not derive from the required class ``base``."""
        return RegistryError(
            f"the {self.noun} {name!r} is registered as {self.points[name].value}, which must derive from {base} "
            f"({_PAGE})"
        )

    def _unknown(self, name: str) -> str:
        text = f"unknown {self.noun} {name!r}"
        if broken := [str(error) for error in self._of_families if isinstance(error, BrokenFamily)]:
            text += f" (cannot be loaded: {'; '.join(broken)})"
        near = difflib.get_close_matches(name, self.points, n=1)
        if near:
            return f"{text}; did you mean {near[0]!r}?"
        if self.points:
            return f"{text}; registered: {', '.join(self.names())}"
        return f"{text}: {self._empty()}"

    def _empty(self) -> str:
        if not self.installed():
            return f"the package {DISTRIBUTION} is not installed, so no {self.noun} is registered; {REINSTALL}"
        return f"no {self.noun} is registered ({self.group}): the installed metadata is stale; {REINSTALL}"


def _is_own(point: EntryPoint | Member | BrokenFamily) -> bool:
    return point.dist is not None and _name_of(point.dist) == DISTRIBUTION


NOUNS = {
    FAMILIES: "family of faults",
    "chaos.faults": "fault kind",
    "chaos.kinds": "fault kind",
    "chaos.jobs": "job kind",
    "chaos.mechanisms": "mechanism",
    "chaos.platforms": "platform",
    "chaos.checks": "check",
    "chaos.checkpoints": "checkpoint reader",
    "chaos.readers": "reader",
    "chaos.proofs": "proof of a fault kind",
    "chaos.effects": "effect of a fault kind",
    "chaos.undo": "undo action",
    "chaos.rules": "plan rules of a family",
}
"""Entry point groups, each with the word for one member."""


@cache
def registry(group: str) -> Registry:
    """Return the registry of an entry point group, by its short or full name (``faults`` or ``chaos.faults``).

    Raises RegistryError for an unknown group. The installed entry points are looked up once in a process.
    """
    full = group if group.startswith("chaos.") else f"chaos.{group}"
    if full not in NOUNS:
        raise RegistryError(f"no entry point group {full!r}; there are {', '.join(NOUNS)}")
    return Registry(full, NOUNS[full])


def package_of(group: str, name: str) -> str | None:
    """Return the package that registers ``name``, with its version; None where it is this project, or there is none.

    Imports nothing. Raises RegistryError as :attr:`Registry.points` does.
    """
    point = registry(group).points.get(name)
    if point is None or point.dist is None or _is_own(point):
        return None
    return f"{point.dist.name} {point.dist.version}"
