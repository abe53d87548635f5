"""Whether this machine has a Docker engine."""

from __future__ import annotations

from chaos.machine.probe import Machine, Probe


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
