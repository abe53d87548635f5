"""Whether MindSpore and the vendor's MindIO TFT call each other as both expect."""

from __future__ import annotations

from chaos.doctor.probes import INTERFACE, OWN_AGENT
from chaos.doctor.sdk.fit import disagreements
from chaos.doctor.sdk.needs import needs_of
from chaos.doctor.sdk.offered import offered_by
from chaos.machine.probe import Machine, Probe


def interface(machine: Machine) -> Probe:
    """Return whether the two agree in the calls of every recovery."""
    return _fit(INTERFACE, machine, own_agent=False)


def own_agent(machine: Machine) -> Probe:
    """Return whether they agree in the functions that MindSpore registers without a cluster's agent."""
    return _fit(OWN_AGENT, machine, own_agent=True)


def _fit(need: str, machine: Machine, *, own_agent: bool) -> Probe:
    """Return whether MindSpore's code and the vendor's package, as installed, call each other as both expect."""
    mindspore, mindio = machine.package("mindspore"), machine.package("mindio_ttp")
    if mindspore is None or mindio is None:
        return Probe(need, True, "only the stand-in is installed")
    versions = [f"{name} {machine.version(name) or 'of unknown version'}" for name in ("mindspore", "mindio_ttp")]
    pair = " and ".join(versions)
    needs = needs_of(mindspore)
    if not needs.uses:
        observation = f"{mindspore} has no call of mindio_ttp that could be compared"
        return Probe(need, False, observation, "repair MindSpore, or run with --sdk standin")
    points = [
        disagreement.text
        for disagreement in disagreements(needs, offered_by(mindio))
        if disagreement.own_agent is own_agent
    ]
    if not points:
        return Probe(need, True, f"{pair} agree")
    advice = "install MindSpore and MindIO TFT of one release, or run with --sdk standin"
    if own_agent:
        advice = "ARF needs the cluster's agent here (job.agent: true), since MindSpore's own cannot take its place"
    return Probe(need, False, f"{pair} disagree: {'; '.join(points)}", advice)
