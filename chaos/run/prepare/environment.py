"""The variables of an environment that decide losses."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.machine.job.launcher_environment import handed_on

_DECIDING = ("MS_", "HCCL_", "ASCEND_", "ACL_", "LCCL_", "OMP_", "MKL_", "OPENBLAS_", "PYTHONPATH", "PYTHONHASHSEED")
_LIBRARIES = ("LD_LIBRARY_PATH", "LD_PRELOAD")


def deciding(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may change a loss.

    These are settings of MindSpore, CANN and the numerical libraries, and paths that modules and libraries are loaded
    from.
    """
    variables = handed_on(environment)
    return {name: variables[name] for name in sorted(variables) if name.startswith(_DECIDING) or name in _LIBRARIES}
