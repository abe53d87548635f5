"""The abilities of this machine: one small probe for each need of a job or a platform, one file a family.

Probes look without changing anything and without importing MindSpore. A job kind or platform names its needs in
its attribute ``needs``, a tuple of keys of :func:`all_probes`.
"""

from chaos.doctor.packages import import_mindspore
from chaos.doctor.probes import BASE, INTERFACE, OWN_AGENT, PROBES, all_probes, needs_of, probe
from chaos.machine.probe import Machine, Probe, has_module

__all__ = [
    "BASE",
    "INTERFACE",
    "OWN_AGENT",
    "PROBES",
    "Machine",
    "Probe",
    "all_probes",
    "has_module",
    "import_mindspore",
    "needs_of",
    "probe",
]
