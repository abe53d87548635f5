"""Whether this machine can reach hosts over SSH."""

from __future__ import annotations

from chaos.machine.probe import Machine, Probe


def ssh(machine: Machine) -> Probe:
    """Return whether the client for hosts over SSH is installed."""
    version = machine.version("paramiko")
    if version is None:
        return Probe("ssh", False, "not installed", "pip install 'chaos-ascend[ssh]'")
    return Probe("ssh", True, f"paramiko {version}")
