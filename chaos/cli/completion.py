"""Completions for a shell: scenarios with their cells, runs, kinds of faults and so on, by the mechanism of click.

A shell waits for it at each Tab. So names come from directories, registries and the YAML of scenarios; neither the
models of the language nor the planner are imported. Whatever goes wrong, nothing is offered: an error would be printed
into the line that the user writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from chaos.cli.paths import REPORTS, run_names, scenario_directories

if TYPE_CHECKING:
    from chaos.scenario.outline import Outline

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""The form in which click asks for completions."""


_DURATION = "seconds"
"""The parameter that has an option of its own, --for."""


def _without_errors(function: Callable[[click.Context, str], list[CompletionItem]]) -> Complete:
    @wraps(function)
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return function(context, incomplete)
        except Exception:  # another package's registered code, and directories that cannot be read
            return []

    return complete


@_without_errors
def scenarios(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete names of scenarios, and YAML files of the current directory; the shell completes other paths."""
    from chaos.scenario.find import SUFFIXES, iter_scenarios

    del context
    if "/" in incomplete:
        return _paths(incomplete)
    here = [path.name for path in Path.cwd().iterdir() if path.suffix in SUFFIXES]
    names = [path.stem for directory in scenario_directories(Path.cwd()) for path in iter_scenarios([directory])]
    return _items(incomplete, [*here, *names]) or _paths(incomplete)


@_without_errors
def cells(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete names of cells of the scenarios on the line, with the axes that ``--set`` pins."""
    settings = context.params.get("settings") or {}
    return _items(incomplete, [name for outline in _outlines(context) for name in outline.cells(settings)])


@_without_errors
def variables(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete variables and axes of the scenarios on the line: ``phase=``, and behind it the values in the file."""
    declarations = [outline.declared for outline in _outlines(context)]
    name, equals, _ = incomplete.partition("=")
    if equals:
        values = [value.shown for declared in declarations for value in declared.possible(name)]
        return _items(incomplete, [f"{name}={value}" for value in values])
    return _items(
        incomplete, [f"{name}=" for declared in declarations for name in (*declared.variables, *declared.axes)]
    )


@_without_errors
def tags(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete tags of the scenarios on the line, or of all that a name finds."""
    from chaos.scenario.find import iter_scenarios

    directories = scenario_directories(Path.cwd())
    outlines = [*_outlines(context)] or [*_of_files(iter_scenarios(directories))]
    return _items(incomplete, sorted({tag for outline in outlines for tag in outline.tags}))


@_without_errors
def runs(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete names of the runs in the reports directory, the newest first; the shell completes other paths."""
    if "/" in incomplete:
        return _paths(incomplete)
    reports = Path(context.params.get("reports") or REPORTS)
    latest = ["latest"] if (reports / "latest").exists() else []
    return _items(incomplete, [*latest, *reversed(run_names(reports))]) or _paths(incomplete)


@_without_errors
def kinds(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete kinds of faults."""
    from chaos.base.registry import registry

    del context
    return _items(incomplete, sorted(registry("faults").points))


@_without_errors
def parameters(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete parameters of the kind of fault that stands before: ``cores=``, and behind it the words it takes."""
    from chaos.base.registry import registry
    from chaos.faults.registered import fault_kind

    words = [context.params.get("kind"), *context.args]  # click has parsed nothing where an option lacks its value
    kind = next(word for word in words if word in registry("faults").points)
    known = fault_kind(kind).parameters or {}
    name, equals, _ = incomplete.partition("=")
    if equals:
        return _items(incomplete, [f"{name}={word}" for word in known[name].words])
    about = {f"{name}=": f"{value.about}; {value.range}" for name, value in known.items() if name != _DURATION}
    return [CompletionItem(text, help=about[text]) for text in about if text.startswith(incomplete)]


@_without_errors
def mechanisms(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete names of mechanisms."""
    from chaos.base.registry import registry

    del context
    return _items(incomplete.upper(), registry("mechanisms").names())


@_without_errors
def jobs(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete names of kinds of jobs."""
    from chaos.base.registry import registry

    del context
    return _items(incomplete, registry("jobs").names())


@_without_errors
def platforms(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """Complete names of platforms."""
    from chaos.base.registry import registry

    del context
    return _items(incomplete, registry("platforms").names())


def _outlines(context: click.Context) -> Iterator[Outline]:
    """Yield the outlines of the scenarios that the line names. A pipe is left to the command."""
    from chaos.base.named_files import is_pipe
    from chaos.scenario.errors import ScenarioError
    from chaos.scenario.find import find_scenario, iter_scenarios

    given = [context.params.get(name) or () for name in ("scenarios", "scenario", "paths")]
    words = [word for value in given for word in ([value] if isinstance(value, str) else value)]
    directories = scenario_directories(Path.cwd())
    for word in dict.fromkeys([*words, *context.args]):  # click has parsed nothing where an option lacks its value
        if word.startswith("-") or is_pipe(Path(word)):
            continue
        try:
            files = iter_scenarios([word]) if Path(word).is_dir() else [find_scenario(word, directories=directories)]
        except ScenarioError:
            continue
        yield from _of_files(files)


def _of_files(paths: Iterable[Path]) -> Iterator[Outline]:
    """Yield the outlines of files, without broken ones."""
    from chaos.scenario.errors import ScenarioError
    from chaos.scenario.outline import outline

    for path in paths:
        with suppress(ScenarioError):
            yield outline(path)


def _items(incomplete: str, texts: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(text) for text in dict.fromkeys(texts) if text.startswith(incomplete)]


def _paths(incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell."""
    return [CompletionItem(incomplete, type="file")]
