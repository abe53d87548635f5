"""The needs of a job's ranks that run on other machines than the harness: they are met there, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from chaos.machine.job.protocol import PlatformError

if TYPE_CHECKING:
    from chaos.machine.remote.package_calls import PackageCalls
    from chaos.platforms.nodes import Site

MODULES = frozenset({"mindspore", "mindformers", "mindio_ttp", "numpy", "torch"})
"""Needs of jobs that are modules of Python."""

MET_THERE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys((*sorted(MODULES), "msrun", "npu", "gpu"), "the machines that the ranks run on")
)
"""Needs of jobs (keys of chaos.doctor.PROBES) that the harness's machine need not meet, and who meets them."""

ONE_MACHINE = "leave memory out, or use a platform of one machine, such as local or docker"
"""The advice for a job that keeps checkpoints in memory, where each node has memory of its own."""

_AT_ONCE = 16


@dataclass(frozen=True)
class Asked:
    """A node to be asked for its packages: its name, the Python of its ranks, and the remote helper there."""

    node: str
    python: str
    helper: PackageCalls


def refuse_lacking(site: Site, nodes: Iterable[Asked], advice: str) -> None:
    """Check that the nodes have the packages that the ranks need. Raises PlatformError for a node that lacks one.

    Without this check a job that cannot begin would be blamed for it. Packages on the job's own PYTHONPATH are not
    asked for. ``advice`` says what to do.
    """
    path = "" if site.job is None else site.job.environment.get("PYTHONPATH", "")
    directories = [Path(directory) for directory in path.split(os.pathsep) if directory]
    packages = [need for need in site.needs if need == "msrun" or (need in MODULES and not _is_in(directories, need))]

    def look(asked: Asked) -> None:
        try:
            lacking = asked.helper.lacking(asked.python, packages, path)
        except PlatformError as error:
            raise PlatformError(f"{asked.node}: it does not say what it has: {error}") from error
        if lacking:
            lack = f"its Python, {asked.python}, lacks what the job needs: {', '.join(lacking)}"
            raise PlatformError(f"{asked.node}: {lack}; {advice}")

    if packages:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(look, nodes))


def _is_in(directories: Iterable[Path], module: str) -> bool:
    return any((path / module).exists() or (path / f"{module}.py").exists() for path in directories)
