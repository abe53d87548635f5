"""The key of a baseline: everything that decides about the losses of a job, and nothing else."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from chaos.scenario.models.scenario import Scenario

_FORMAT = 1
NO_MATTER = {
    "resume",
    "resume_arguments",
    "savers",
    "timings",
    "controller",
    "hccl",
    "torchrun",
    "torchft",
    "storage",
    "compile_cache",
}
"""Keys of the job that change no loss. Cells that differ in them alone are compared with the same fault-free run."""


def baseline_key(
    scenario: Scenario,
    *,
    fingerprint: Mapping[str, str],
    versions: Mapping[str, str],
    sdk: str,
    cores: int,
    same_losses: Collection[str] = (),
) -> str:
    """Return a key that two jobs share only if they compute the same, 64 hexadecimal digits.

    Faults, expectations, deadlines and names are left out: the baseline has no faults. ``fingerprint`` stands for the
    job's own files, ``versions`` for its libraries. The processor is part of it: another one may round differently. So
    is the number of ``cores``, since libraries may choose other algorithms by it. ``same_losses`` are more keys of the
    job to leave out: the keys that change no loss of its kind's own script. A script that the scenario names may read
    them, so there they count.
    """
    left_out = NO_MATTER if scenario.job.script else NO_MATTER.union(same_losses)
    job = scenario.job.model_dump(mode="json", exclude=left_out)
    parts: dict[str, Any] = {
        "format": _FORMAT,
        # Without cluster.network the key is the key of releases before that option.
        "cluster": scenario.cluster.model_dump(mode="json", exclude=None if scenario.cluster.network else {"network"}),
        "job": job,
        "fingerprint": dict(sorted(fingerprint.items())),
        "versions": dict(sorted(versions.items())),
        "sdk": sdk,
        "machine": platform.machine(),
        "processor": processor_model(),
        "cores": cores,
    }
    if scenario.hooks.before:  # what such a command prepares may be read by the job
        parts["before"] = [list(hook.command) for hook in scenario.hooks.before]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model name and instruction sets, as far as the kernel reports them."""
    try:
        lines = cpuinfo.read_bytes().decode("ascii", "replace").split("\n")
    except OSError:
        return ""
    keys = ("model name", "flags", "Features", "CPU part")
    values = {line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in lines if line.startswith(keys)}
    return json.dumps(values, sort_keys=True)
