"""The harness's own environment: what of it a job is not handed, and what of it decides about losses."""

from __future__ import annotations

from collections.abc import Mapping

_SWITCHES = frozenset({"MS_ENABLE_TFT", "MINDIO_FOR_MINDSPORE", "MINDX_TASK_ID"})
_SWITCH_PREFIX = "MS_TFT_"
_DECIDING = ("MS_", "HCCL_", "ASCEND_", "ACL_", "LCCL_", "OMP_", "MKL_", "OPENBLAS_", "PYTHONPATH", "PYTHONHASHSEED")
_LIBRARIES = ("LD_LIBRARY_PATH", "LD_PRELOAD")


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what says which mechanisms are on, and where their controller is.

    The plan says both (``job.protection``, ``job.controller``), and a job kind or ``job.environment`` hands them to the
    job. What a shell or a container has set for another job would switch on what the plan says is off.
    Source of the names: MindSpore, power-off checkpoint; MINDX_TASK_ID keeps rank 0 from starting the controller.
    """
    return {name: value for name, value in environment.items() if not _switches(name)}


def deciding(environment: Mapping[str, str]) -> dict[str, str]:
    """What of the environment may change a loss: settings of MindSpore, CANN and the numerical libraries, and paths
    that modules and libraries are loaded from."""
    found = handed_on(environment)
    return {name: found[name] for name in sorted(found) if name.startswith(_DECIDING) or name in _LIBRARIES}


def _switches(name: str) -> bool:
    return name in _SWITCHES or name.startswith(_SWITCH_PREFIX)
