"""The allowance: which own code of a scenario may run. A scenario is input, and can allow nothing by itself."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.base.refusal import Refused
from chaos.scenario.errors import printable, suggest

if TYPE_CHECKING:
    from chaos.scenario.models.own import Hook
    from chaos.scenario.models.scenario import Scenario

STAGES = ("before", "after", "notify")


@dataclass(frozen=True)
class Allowed:
    """The names of allowed checks, and the allowed commands as a shell would take them."""

    checks: frozenset[str] = frozenset()
    hooks: frozenset[str] = frozenset()

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(self.checks | other.checks, self.hooks | other.hooks)

    def check(self, name: str) -> bool:
        """Return whether this check may run."""
        return name in self.checks

    def hook(self, hook: Hook) -> bool:
        """Return whether this command may run: exactly this program with exactly these arguments."""
        return in_words(hook.command) in self.hooks


NOTHING = Allowed()


def allowed(checks: Iterable[str], hooks: Iterable[str]) -> Allowed:
    """Return the allowance of names and commands as a user writes them. Raises Refused for an unusable command."""
    return Allowed(frozenset(checks), frozenset(map(_normal, hooks)))


def in_words(command: Sequence[str]) -> str:
    """Return a command as a shell would take it."""
    return shlex.join(command)


def has_own_code(scenario: Scenario) -> bool:
    """Return whether the scenario names own checks or hooks."""
    return bool(scenario.checks) or any(_hooks(scenario))


def refuse_unallowed(scenario: Scenario, directory: Path, allowance: Allowed) -> None:
    """Refuse a scenario with own code that is not allowed, or is not there. Raises Refused.

    ``directory`` is that of the scenario.
    """
    for name in scenario.checks:
        path = module_of(name, directory)
        if not allowance.check(name):
            what = f"the check {name} is Python code in {path}"
            raise Refused(_advice(scenario, what, "--allow-checks", "allow-checks", name, allowance.checks))
        if not path.is_file():
            raise Refused(f"{scenario.name}: the check {name} needs a file {path}, which is not there")
    for hook in _hooks(scenario):
        words = in_words(hook.command)
        if not allowance.hook(hook):
            what = f"a hook is the command {words}"
            raise Refused(_advice(scenario, what, "--allow-hook", "allow-hooks", words, allowance.hooks))
        if program_of(hook.command, directory) is None:
            raise Refused(
                f"{scenario.name}: there is no program {printable(hook.command[0])} to run as a hook: a name is looked "
                f"for in PATH, a path such as ./prepare in {directory}"
            )


def own_sources(scenario: Scenario, directory: Path) -> dict[str, str]:
    """Return a digest for each file beside the scenario that its checks and hooks execute."""
    checks = {module_of(name, directory) for name in scenario.checks}
    programs = {directory / hook.command[0] for hook in _hooks(scenario) if "/" in hook.command[0]}
    return {f"own code {path}": _digest(path) for path in sorted(checks | programs)}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "not readable"


def module_of(name: str, directory: Path) -> Path:
    """Return the file of a check."""
    return directory / f"{name.partition(':')[0]}.py"


def program_of(command: Sequence[str], directory: Path) -> str | None:
    """Return the path of a command's program; None where it is not there or cannot be executed."""
    program = command[0]
    if "/" in program:
        path = directory / program
        return str(path.absolute()) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(program)


def _hooks(scenario: Scenario) -> Iterator[Hook]:
    for stage in STAGES:
        yield from getattr(scenario.hooks, stage)


def _advice(scenario: Scenario, what: str, option: str, key: str, name: str, allowed_names: Iterable[str]) -> str:
    near = [other for other in allowed_names if "did you mean" in suggest(name, [other])]
    similar = f"; {printable(near[0])} is allowed, which is another one" if near else ""
    shown = printable(name)
    in_toml = json.dumps(shown, ensure_ascii=False)
    return (
        f"{scenario.name}: {printable(what)}, and it runs only where you allow it{similar}: look at it, then give "
        f"{option} {shlex.quote(shown)}, or write {key} = [{in_toml}] into chaos.toml "
        "(docs/guides/own-code.md in the repository)"
    )


def _normal(command: str) -> str:
    try:
        return shlex.join(shlex.split(command))
    except ValueError as error:
        raise Refused(f"--allow-hook {command!r}: {error}: quote it as in a shell") from None
