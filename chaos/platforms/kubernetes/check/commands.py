"""Part of the check of a manifest: start commands that lose the exit code of the job.

Where a container ends with 0 although its job failed, the pod is Completed, and nothing is rescheduled (MindCluster,
FAQ on pods that are Completed and not Error).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from chaos.platforms.kubernetes.check.pods import Template
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem

_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k|a)?sh")
_COMMAND = re.compile(r"-[a-z]*c")
_ENDS = frozenset({";", "&&", "||", "&", "\n"})
_HARMLESS = frozenset({"echo", "printf", "sleep", "date", "sync", "true", ":", "cp", "mv", "rm", "touch", "ls", "cat"})
"""Commands behind a job that end with 0 however the job ended."""


def command_problems(pods: Sequence[Template]) -> Iterator[Problem]:
    """Yield commands for a shell, of containers that train, after which the container's exit code is not the job's."""
    for pod in pods:
        container = pod.container
        if container is None or not pod.trains:
            continue
        script = shell_script(container)
        if script is not None and (why := lost_exit_code(str(script.data))) is not None:
            yield script.problem(
                f"the exit code of the job is lost: {why}. The pod is Completed when the job fails, and nothing is "
                "rescheduled",
                "begin with `set -o pipefail` (bash), or end with the job's own exit code",
            )


def shell_script(container: Placed) -> Placed | None:
    """Return the text that a container hands to a shell."""
    words = [word for part in ("command", "args") for word in _words(container.at(part))]
    for number, word in enumerate(words[:-1]):
        if _COMMAND.fullmatch(str(word.data)) and number and _SHELL.fullmatch(str(words[number - 1].data)):
            return words[number + 1]
    return None


def _words(part: Placed | None) -> Iterator[Placed]:
    yield from part.values() if part is not None else ()


def lost_exit_code(script: str) -> str | None:
    """Return why a shell does not end with the exit code of the job in ``script``; None where it may."""
    try:
        pipelines = _pipelines(script)
    except ValueError:  # unclosed quotes: the shell itself reports them
        return None
    if not pipelines or "PIPESTATUS" in script:
        return None
    options = {word for commands, _ in pipelines for command in commands for word in command if command[0] == "set"}
    strict = "pipefail" in options
    stops = any(re.fullmatch(r"-[a-z]*e[a-z]*", word) for word in options) or "errexit" in options
    jobs = [(commands, end) for commands, end in pipelines if commands and commands[0] and commands[0][0] != "set"]
    if not jobs:
        return None
    commands, _ = jobs[-1]
    last = commands[-1][0] if commands[-1] else ""
    if len(commands) > 1 and not strict:
        return f"for a pipe the shell returns the code of its last command, `{last}`"
    before = jobs[-2] if len(jobs) > 1 else None
    if last not in _HARMLESS or len(commands) > 1 or before is None:
        return None
    if before[1] == "||":
        return f"`|| {last}` takes its place"
    if before[1] in (";", "\n") and not stops:
        return f"the shell ends with the code of its last command, `{last}`"
    return None


def _pipelines(script: str) -> list[tuple[list[list[str]], str]]:
    """Return the pipelines of a script: the words of each of its commands, and the operator behind it."""
    pipelines: list[tuple[list[list[str]], str]] = []
    for line in script.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        commands: list[list[str]] = [[]]
        for word in lexer:
            if word in ("|", "|&"):
                commands.append([])
            elif word in _ENDS:
                pipelines.append((commands, word))
                commands = [[]]
            else:
                commands[-1].append(word)
        pipelines.append((commands, "\n"))
    return [(commands, end) for commands, end in pipelines if any(commands)]
