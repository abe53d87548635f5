"""A draft as the text of a scenario file, with a comment on each line that the user should know the reason of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from chaos.init.device import CPU
from chaos.init.entries import Draft, Entry
from chaos.scenario.errors import printable
from chaos.scenario.models.mechanisms import launcher_restart

CHECK = "CHECK"
"""The word that begins the comment of a guess."""

_WIDTH = 120
_PLAIN = re.compile(r"-{0,2}[A-Za-z_/][A-Za-z0-9_./=+-]*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n", "none", "inf", "nan"}


def scenario_text(draft: Draft) -> str:
    """Return the file."""
    lines = [_line(text, entry) for text, entry in _lines(draft)]
    return "\n".join(part for line in lines for part in line) + "\n"


def one_line(text: str) -> str:
    """Return a text without line breaks and other characters that no comment can hold."""
    return printable(" ".join(text.split()))


def scalar(value: object) -> str:
    """Return a value as YAML, quoted where another type could be read in it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


def _lines(draft: Draft) -> Iterator[tuple[str, Entry | None]]:
    """Yield the lines, each with the entry that it shows."""
    yield "chaos: 1", None
    yield f"name: {scalar(draft.name)}", None
    yield "description: >-", None
    yield f"  {_description(draft)}", None
    yield "cluster:", None
    if draft.nodes is not None:
        yield f"  nodes: {draft.nodes.value}", draft.nodes
        yield "  network: true", None
    yield f"  ranks: {draft.ranks.value}", draft.ranks
    if draft.open_shard is not None:
        yield f"  # {CHECK} parallel: {{data_parallel: {draft.ranks.value}, shard: …}}", None
        yield f"  # {one_line(draft.open_shard.why)}", None
    if draft.parallel:
        yield "  parallel:", None
        for name, entry in draft.parallel.items():
            yield f"    {name}: {scalar(entry.value)}", entry
    yield from _job_lines(draft)
    yield "faults:", None
    yield f"  - id: {draft.fault}", None
    yield f"    kind: {draft.fault}", None
    yield "    target:", None
    last = int(draft.ranks.value) - 1
    yield (f"      rank: {last}" if draft.restarts is not None else f"      ranks: {_ranks(last + 1)}"), None
    yield "    trigger:", None
    yield f"      step: {draft.fault_step.value}", draft.fault_step
    if not draft.resumes:
        yield "expect:", None
        yield "  resume: none", Entry("none", "the job just ends")


def _job_lines(draft: Draft) -> Iterator[tuple[str, Entry | None]]:
    yield "job:", None
    yield f"  kind: {draft.kind}", None
    if draft.device.value != CPU:
        yield f"  device: {draft.device.value}", draft.device
    if draft.python is not None:
        key = f"# {CHECK} python" if draft.python.guessed else "python"
        yield f"  {key}: {scalar(draft.python.value)}", replace(draft.python, guessed=False)
    if draft.launcher is not None:
        yield from _list("  command", draft.launcher.command)
        if (variables := draft.launcher.variables) is not None:
            yield f"  rank_variables: {{{variables.value[0]}: {variables.value[1]}}}", variables
    yield f"  script: {scalar(draft.script)}", None
    yield from _list("  arguments", draft.arguments)
    if draft.resume_arguments is not None:
        yield from _list("  resume_arguments", draft.resume_arguments)
    yield f"  steps: {draft.steps.value}", draft.steps
    if draft.interval is not None:
        yield f"  checkpoint_interval: {draft.interval.value}", draft.interval
    if draft.restarts is not None:
        yield f"  protection: [{launcher_restart()}]", None
        yield f"  restart_limit: {draft.restarts.value}", draft.restarts
    if draft.savers is not None:
        yield f"  savers: {draft.savers.value}", draft.savers
    if draft.exports is not None:
        yield from _list("  exports", draft.exports)
    if draft.step_optimizer is not None:
        yield f"  step_optimizer: {draft.step_optimizer.value}", draft.step_optimizer
    if draft.seeded is not None:
        yield "  seed_at_start: true", draft.seeded
    if draft.environment:
        yield "  environment:", None
        for name, entry in draft.environment.items():
            yield f"    {name}: {json.dumps(str(entry.value), ensure_ascii=False)}", entry


def _description(draft: Draft) -> str:
    step = draft.fault_step.value
    who = "all ranks" if draft.ranks.value > 1 else "the rank"
    if draft.restarts is not None:
        who = f"rank {draft.ranks.value - 1}"
    sentence = one_line(f"Fault {draft.fault} hits {who} of {draft.script} in step {step}.")
    if draft.restarts is not None:
        return f"{sentence} {draft.kinds_launcher} starts all ranks again, and they go on from their checkpoint."
    return f"{sentence} The job is started again and goes on from its checkpoint." if draft.resumes else sentence


def _list(key: str, entry: Entry) -> Iterator[tuple[str, Entry | None]]:
    words: Sequence[str] = entry.value
    if not words:
        return
    line = f"{key}: [{', '.join(map(scalar, words))}]"
    if len(line) <= _WIDTH:
        yield line, entry
        return
    yield f"{key}:", entry
    indent = " " * (len(key) - len(key.lstrip()) + 2)
    yield from ((f"{indent}- {scalar(word)}", None) for word in words)


def _ranks(count: int) -> str:
    return f"[{', '.join(map(str, range(count)))}]"


def _line(text: str, entry: Entry | None) -> Iterable[str]:
    """Return a line with its comment: behind it, or above it where both are too long."""
    if entry is None or not entry.why:
        return (text,)
    why = one_line(entry.why)
    comment = f"# {CHECK}: {why}" if entry.guessed else f"# {why}"
    if len(text) + 2 + len(comment) <= _WIDTH:
        return (f"{text}  {comment}",)
    indent = " " * (len(text) - len(text.lstrip()))
    return (f"{indent}{comment[: _WIDTH - len(indent)]}", text)
