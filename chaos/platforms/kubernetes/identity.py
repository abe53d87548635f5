"""The identity of a cluster: a kubeconfig, its current context or an address may lead to another cluster later."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.kubernetes.client.api import Api, ApiError
from chaos.platforms.kubernetes.run_client import NotOurs

_OLDEST = "/api/v1/namespaces/kube-system"
"""A namespace that every cluster has as long as it lives, with a UID that no other cluster has."""


def identity_of(api: Api) -> dict[str, str | None]:
    """Return the cluster's identity.

    It has ``server``, its address; ``authority``, the digest of the certificate authority that its server is checked
    with; ``uid``, the UID of the namespace kube-system, where it may be read. It needs no right: without the right to
    read the namespace the UID is left out. Raises ApiError.
    """
    configuration = api.client.configuration
    return {
        "server": str(configuration.host).rstrip("/"),
        "authority": _digest(getattr(configuration, "ssl_ca_cert", None)),
        "uid": _uid(api),
    }


def refuse_another(recorded: object, api: Api) -> None:
    """Raise NotOurs where an undo step has recorded another cluster; an old step has recorded none."""
    if recorded is None:
        return
    if not isinstance(recorded, Mapping):
        raise PlatformError(f"the undo step does not say which cluster: {recorded!r}")
    now = identity_of(api)
    known = [key for key in ("uid", "server", "authority") if recorded.get(key) is not None and now[key] is not None]
    decisive = ["uid"] if "uid" in known else known
    if any(recorded[key] != now[key] for key in decisive) or not decisive:
        raise NotOurs(
            f"this is another cluster than the run's: that was {_in_words(recorded)}, and KUBECONFIG and context lead "
            f"to {_in_words(now)}; nothing was touched. Set KUBECONFIG to the run's cluster, and run chaos heal again"
        )


def _uid(api: Api) -> str | None:
    try:
        namespace = api.request("get", _OLDEST)
    except ApiError as error:
        if error.status in (401, 403, 404):
            return None
        raise
    return (namespace.get("metadata") or {}).get("uid")


def _digest(path: Any) -> str | None:
    try:
        return None if not path else hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def _in_words(identity: Mapping[str, Any]) -> str:
    uid = identity.get("uid")
    return f"{identity.get('server')}" + (f" (kube-system {uid})" if uid else "")
