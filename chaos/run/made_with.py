"""The makings of a run that no later call could find out: command, values of variables, state of the machine."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import chaos
from chaos.machine.linux.masking import MASK, masked

_REVISIONS = ("CI_COMMIT_SHA", "GITHUB_SHA", "GIT_COMMIT")
"""Variables with the commit that a job of GitLab, of GitHub Actions or of Jenkins tests."""


def recorded_command(arguments: Sequence[str]) -> list[str] | None:
    """Return the command line with its secrets replaced; None where the harness was called by no command."""
    return list(masked(["chaos", *arguments])) if arguments else None


def masked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of variables and axes with secrets replaced, by their names and by their own text."""
    return {name: _masked(name, value) for name, value in values.items()}


def machine_facts() -> dict[str, Any]:
    """Return facts about the machine and its load: system, processors, and the load of the last minute if known."""
    try:
        load: float | None = round(os.getloadavg()[0], 2)
    except OSError:
        load = None
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": load,
    }


def ci_job(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the ``job`` of continuous integration that makes this run, as a URL, and the ``revision`` that it tests.

    GitHub Actions, GitLab and Jenkins name both in variables; elsewhere both are empty.
    """
    job = environ.get("CI_JOB_URL") or environ.get("BUILD_URL", "")
    if not job and (number := environ.get("GITHUB_RUN_ID")):
        server, repository = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        job = f"{server}/{repository}/actions/runs/{number}"
    revision = next((environ[name] for name in _REVISIONS if environ.get(name)), "")
    return {"job": masked([job])[0], "revision": revision}


def own_code() -> str | None:
    """Return a digest of this package's files, the same wherever it lies; None where a file cannot be read.

    A version says little about a checkout: two runs were made by the same code if this digest is the same.
    """
    try:
        return code_key("", Path(chaos.__file__).parent)
    except OSError:
        return None


def code_key(scenario_text: str, package: Path, *, without: Collection[str] = ()) -> str:
    """Return the key of comparable runs: the scenario's text and the harness's own files, without compiled ones.

    ``without`` names rooms of the package that have no part in the comparison.
    """
    digest = hashlib.blake2b(scenario_text.encode(), digest_size=8)
    for parts, path in sorted(_sources(str(package), ())):
        if parts[0] not in without:
            content = _content(path)
            digest.update("/".join(parts).encode() + b"\0%d\0" % len(content) + content)
    return digest.hexdigest()


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        return file.read()


def _sources(directory: str, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the files below a directory except compiled ones: the parts of their paths, and their full paths.

    There are a thousand of them, and every run waits for this before its job starts.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            parts = (*above, entry.name)
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _sources(entry.path, parts)
            elif not entry.name.endswith(".pyc") and entry.is_file():
                yield parts, entry.path


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _masked(str(key), entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_masked(name, entry) for entry in value]
    if value is None or isinstance(value, bool):
        return value
    shown = masked([f"{name}={value}"])[0].removeprefix(f"{name}=")
    return shown if isinstance(value, str) or shown == MASK or not _is_json(value) else value


def _is_json(number: float) -> bool:
    """Return whether every reader of JSON takes this number: it is finite, and no longer than 64 bits."""
    return math.isfinite(number) if isinstance(number, float) else abs(number) < 1 << 63
