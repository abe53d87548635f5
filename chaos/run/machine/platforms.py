"""What places other than this machine are reached by."""

from __future__ import annotations

from importlib import util

from chaos.run.machine.base import Machine, Probe


def docker(machine: Machine) -> Probe:
    """Whether a Docker engine answers."""
    if machine.version("docker") is None:
        return Probe("docker", False, "not installed", "pip install 'chaos-ascend[docker]'")
    from chaos.platforms.base import PlatformError
    from chaos.platforms.docker.engine import connect

    try:
        client = connect(None)
    except PlatformError:
        advice = "start a Docker engine; DOCKER_HOST or cluster.docker.engine says where it is"
        return Probe("docker", False, "no engine answers", advice)
    version = client.version().get("Version")
    client.close()
    return Probe("docker", True, f"engine {version}")


def kubernetes(_: Machine) -> Probe:
    """Whether a configuration names a cluster; it is not called."""
    if util.find_spec("kubernetes") is None:
        return Probe("kubernetes", False, "its client is not installed", "pip install 'chaos-ascend[kubernetes]'")
    from chaos.platforms.base import PlatformError
    from chaos.platforms.kubernetes.api import connect

    try:
        server = connect(None).client.configuration.host
    except PlatformError as error:
        return Probe("kubernetes", False, str(error), "set KUBECONFIG to a file whose current context is the cluster's")
    return Probe("kubernetes", True, f"the client, for {server}")


def ssh(machine: Machine) -> Probe:
    """Whether the client for hosts over SSH is installed."""
    version = machine.version("paramiko")
    if version is None:
        return Probe("ssh", False, "not installed", "pip install 'chaos-ascend[ssh]'")
    return Probe("ssh", True, f"paramiko {version}")
