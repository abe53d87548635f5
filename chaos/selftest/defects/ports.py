"""Defects of ports: a process still listens where the job did, or nothing shows whether any does."""

from __future__ import annotations

from chaos.selftest.defect import Defect, ExpectedVerdict, Mutate
from chaos.selftest.records import recorded

PORT = 20003


def _defect(name: str, what: str, base: str, mutate: Mutate, *reason: str, verdict: ExpectedVerdict = "fail") -> Defect:
    return Defect(name, what, "files", base, "hygiene", reason, verdict, mutate)


def _listening(*ports: object) -> Mutate:
    """Return a mutation of the harness's findings on the ports of the run (chaos.run.watch.ports_left)."""
    return recorded(lambda records: records.last("hygiene").update(ports=list(ports)))


DEFECTS = (
    _defect(
        "port-left-open-after-repair",
        "A process of the job that was repaired online still listens at the end.",
        "uce",
        _listening(PORT),
        "no process, port or unfinished file is left",
        "ports still open: 20003",
    ),
    _defect(
        "port-of-the-job-and-of-others",
        "Other programs listen on one port of the run, and a process of the job on the next.",
        "arf",
        _listening({"port": PORT, "listeners": []}, PORT + 1),
        "ports still open: 20004",
    ),
    _defect(
        "port-of-an-unknown-process",
        "A process listens on a port of the run, and nothing shows whether it belongs to the job.",
        "ttp",
        _listening({"port": PORT, "listeners": [{"pid": 77, "cmdline": ["python", "train.py"]}]}),
        "port 20003 is in use by processes of no known run: 77 (python train.py)",
        verdict="unknown",
    ),
    _defect(
        "port-of-a-hidden-process",
        "A process that cannot be seen listens on a port of the run.",
        "rsc",
        _listening({"port": PORT, "listeners": []}),
        "port 20003 is in use",
        "processes that cannot be seen",
        verdict="unknown",
    ),
    _defect(
        "ports-not-looked-at",
        "The harness did not look for listeners on the ports of the run.",
        "tsp",
        recorded(lambda records: records.last("hygiene").pop("ports")),
        "not looked for: ports",
        verdict="unknown",
    ),
)
