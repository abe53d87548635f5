"""What a job's ranks need, where they run on other machines than the harness does: that is met there, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MODULES = frozenset({"mindspore", "mindformers", "mindio_ttp", "numpy"})
"""Needs of jobs that are modules of Python."""

MET_THERE: Mapping[str, str] = MappingProxyType(
    dict.fromkeys((*sorted(MODULES), "msrun", "npu"), "the machines that the ranks run on")
)
"""Needs of jobs (keys of chaos.run.machine.PROBES) that the harness's own machine need not meet, and who meets them."""
