"""The settings of a process of the stand-in in its own run: its place, the secret, the timings, the log."""

from __future__ import annotations

import os

from chaos.agent.configuration import Configuration, read_configuration
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.timings import Timings, timings_of


def configuration() -> Configuration:
    """Read the run's configuration, which the environment names."""
    return read_configuration(os.environ["CHAOS_AGENT"])


def secret(settings: Configuration) -> bytes:
    """Read the run's secret."""
    assert settings.secret is not None
    with open(settings.secret, "rb") as file:
        return file.read().strip()


def timings(settings: Configuration, ranks: int) -> Timings:
    """Return the limits of the run's profile for so many ranks."""
    return timings_of(settings.settings["timings"], os.environ, ranks)


def log() -> TtpLog:
    """Open this process's log where the environment says."""
    return TtpLog(os.environ.get("TTP_LOG_PATH"), os.environ)
