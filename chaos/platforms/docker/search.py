"""Searching a whole engine for the leftovers of one run, not by its label alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from chaos.platforms.docker.engine import RUN_LABEL, connect_again, engine_errors
from chaos.platforms.docker.platform import network_name


def search_engine(arguments: Mapping[str, Any], token: str, run_dir: Path) -> list[str]:
    """Return the run's containers, networks and volumes, in words, whatever their state.

    They carry its label or the name of its network, or a directory of the run is bound into them. ``arguments`` come
    from the run's END_NODES step. Raises PlatformError where its engine does not answer.
    """
    with (
        closing(connect_again(arguments)) as client,
        engine_errors("the Docker engine does not say what it has of the run"),
    ):
        containers = client.api.containers(all=True)
        networks = client.api.networks()
        volumes = client.api.volumes().get("Volumes") or []
    name = network_name(token)
    return [
        *(
            f"container {_name(container)}, {container.get('State')}"
            for container in containers
            if _is_own(container, token, name) or _binds(container, run_dir)
        ),
        *(f"network {_name(network)}" for network in networks if _is_own(network, token, name)),
        *(f"volume {_name(volume)}" for volume in volumes if _is_own(volume, token, name)),
    ]


def _is_own(item: Mapping[str, Any], token: str, name: str) -> bool:
    labels = item.get("Labels") or {}
    return labels.get(RUN_LABEL) == token or any(known.startswith(name) for known in _names(item))


def _binds(container: Mapping[str, Any], run_dir: Path) -> bool:
    sources = [Path(str(mount.get("Source") or "")) for mount in container.get("Mounts") or []]
    return any(source.is_relative_to(run_dir) for source in sources)


def _name(item: Mapping[str, Any]) -> str:
    return next(iter(_names(item)), str(item.get("Id")))


def _names(item: Mapping[str, Any]) -> Iterable[str]:
    """Return a container's names: the engine lists several, with a slash before each."""
    listed = item.get("Names") or [item.get("Name")]
    return [str(name).removeprefix("/") for name in listed if name]
