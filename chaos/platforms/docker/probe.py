"""Whether this machine has a Docker engine, and the engine the image of nodes that borrow this host's Python."""

from __future__ import annotations

from dataclasses import replace

from chaos.machine.probe import Machine, Probe
from chaos.scenario.models.defaults import SKELETON


def docker(machine: Machine) -> Probe:
    """Return whether a Docker engine answers."""
    if machine.version("docker") is None:
        return Probe("docker", False, "not installed", "pip install 'chaos-ascend[docker]'")
    from chaos.machine.job.protocol import PlatformError
    from chaos.platforms.docker.engine import connect

    try:
        client = connect(None)
    except PlatformError:
        advice = "start a Docker engine; DOCKER_HOST or cluster.docker.engine says where it is"
        return Probe("docker", False, "no engine answers", advice)
    version = client.version().get("Version")
    client.close()
    return Probe("docker", True, f"engine {version}")


def docker_image(machine: Machine) -> Probe:
    """Return whether the engine has the image of nodes; without an engine, why there is none."""
    engine = docker(machine)
    if not engine.ok:
        return replace(engine, need="docker-image")
    from chaos.machine.job.protocol import PlatformError
    from chaos.platforms.docker.engine import connect, engine_errors

    try:
        client = connect(None)
        with engine_errors(f"image {SKELETON} cannot be looked up"):
            known = client.images.list(name=SKELETON)
        client.close()
    except PlatformError as error:
        return Probe("docker-image", False, str(error), "look at the engine's log")
    if not known:
        return Probe("docker-image", False, f"the engine has no image {SKELETON}", "make it: chaos image")
    return Probe("docker-image", True, SKELETON)
