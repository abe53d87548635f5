"""Errors that a device reports."""

from __future__ import annotations

from chaos.faults.family import Family, Kind
from chaos.plan.effect import DeviceError, Effect

FAMILY = Family(
    kinds={
        "ecc": Kind("chaos.faults.device_errors.ecc:KIND", "chaos.faults.device_errors.proof:RAISED"),
        "exception": Kind("chaos.faults.device_errors.exception:KIND", "chaos.faults.device_errors.proof:RAISED"),
        "hcce": Kind("chaos.faults.device_errors.hcce:KIND", "chaos.faults.device_errors.proof:RAISED"),
        "link": Kind(
            "chaos.faults.device_errors.link:KIND",
            "chaos.faults.device_errors.proof_link:LINK",
            Effect(breaks_link=True, names_finder=True),
            job={"hccl": {"watchdog": False, "time_scale": 0.01}},
        ),
        "link-error": Kind("chaos.faults.device_errors.link_error:KIND", "chaos.faults.device_errors.proof:RAISED"),
        "suspect-remote": Kind(
            "chaos.faults.device_errors.suspect_remote:KIND",
            "chaos.faults.device_errors.proof:RAISED",
            Effect(error=DeviceError("507057", "another rank's device is suspected")),
        ),
        "uce": Kind("chaos.faults.device_errors.uce:KIND", "chaos.faults.device_errors.proof:RAISED"),
    },
    rules="chaos.faults.device_errors.plan:RULES",
)
