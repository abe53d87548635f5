"""The proof of every fault kind: of the built-in kinds in a table, of other packages' kinds by entry points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from chaos.base.registry import Registry, RegistryError, UnknownName, package_of, registry
from chaos.checks.injection.agreement import agrees, ends_as_shown, hangs_as_shown, recorded, severed_as_shown
from chaos.checks.injection.conditions import MESH, SHOWN, SKEW, condition_doubts
from chaos.evidence import in_cluster, on_node
from chaos.evidence.checkpoints.damage import damage_doubts
from chaos.evidence.deaths import ACTING, OOM, OWN_ENDS, acting_doubts, death_doubts
from chaos.evidence.doubt import Doubt
from chaos.evidence.proof import Case, Proof, lacking_evidence
from chaos.evidence.silent import silence_doubts
from chaos.faults.ascend import proof as on_device
from chaos.faults.checkpoints.proof_lost import lost_files_doubts
from chaos.faults.device_errors.proof import KINDS as RAISED
from chaos.faults.device_errors.proof import raised_doubts
from chaos.faults.device_errors.proof_link import KIND as LINK
from chaos.faults.device_errors.proof_link import severed_doubts
from chaos.faults.pause.proof import KIND as PAUSE
from chaos.faults.pause.proof import paused_doubts
from chaos.faults.rank_acts.proof import KINDS as HANGS
from chaos.faults.rank_acts.proof import hung_doubts
from chaos.faults.rank_acts.proof_slow import slowed_doubts
from chaos.faults.storage.proof import (
    DAMAGES,
    REFUSALS,
    RESET,
    TERMINATE,
    reset_doubts,
    storage_doubts,
    termination_doubts,
)
from chaos.faults.values.proof import ALTERED, FACTS, altered_doubts
from chaos.faults.values.proof import KINDS as ALTERING
from chaos.faults.values.proof_spike import KIND as SPIKE
from chaos.faults.values.proof_spike import SCALED, scaled_doubts
from chaos.plan.hangs import SLOW

GROUP = "chaos.proofs"
"""Entry point group by which another package registers the proof of its fault kind, by the name of that kind."""

Part = Callable[[Case], Iterable[Doubt]]


class NoProof(Exception):
    """Nothing here can prove a fault of this kind. The text says what is missing."""


def _all(*parts: Part) -> Part:
    def doubts(case: Case) -> Iterator[Doubt]:
        for part in parts:
            yield from part(case)

    return doubts


def _death(case: Case) -> Iterable[Doubt]:
    return death_doubts(case.history, case.fault, case.injection)


def _own_end(case: Case) -> Iterable[Doubt]:
    return acting_doubts(case.history, case.fault, case.wanted, case.landing, case.injection, case.evidence)


def _hung(case: Case) -> Iterable[Doubt]:
    return hung_doubts(case.history, case.fault, case.wanted, case.landing, case.injection)


def _altered(case: Case) -> Iterable[Doubt]:
    return altered_doubts(case.history, case.artifacts, case.fault, case.wanted, case.landing, case.injection)


def _slowed(case: Case) -> Iterable[Doubt]:
    return slowed_doubts(case.history, case.fault, case.wanted, case.landing, case.injection)


def _raised(case: Case) -> Iterable[Doubt]:
    return raised_doubts(case.history, case.fault, case.wanted, case.landing, case.evidence, case.injection)


def _scaled(case: Case) -> Iterable[Doubt]:
    return scaled_doubts(case.plan, case.history, case.fault, case.wanted, case.landing, case.injection)


def _severed(case: Case) -> Iterable[Doubt]:
    return severed_doubts(case.history, case.fault, case.wanted, case.landing, case.injection)


def _storage(case: Case) -> Iterable[Doubt]:
    return storage_doubts(case.fault, case.landing, case.evidence)


def _reset(case: Case) -> Iterable[Doubt]:
    return reset_doubts(case.fault, case.landing, case.evidence)


def _terminated(case: Case) -> Iterable[Doubt]:
    return termination_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def _condition(case: Case) -> Iterable[Doubt]:
    return condition_doubts(case.history, case.fault, case.landing, case.evidence)


def _silent(case: Case) -> Iterable[Doubt]:
    return silence_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def _paused(case: Case) -> Iterable[Doubt]:
    return paused_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def _lost_files(case: Case) -> Iterable[Doubt]:
    return lost_files_doubts(case.fault, case.landing, case.evidence)


def _damaged(case: Case) -> Iterable[Doubt]:
    return damage_doubts(case.plan, case.history, case.fault, case.landing, case.evidence)


def _of_node(case: Case) -> Iterable[Doubt]:
    return on_node.node_doubts(case.fault, case.landing, case.evidence)


def _of_device(case: Case) -> Iterable[Doubt]:
    return on_device.device_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def _of_cluster(case: Case) -> Iterable[Doubt]:
    return in_cluster.cluster_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


_DIGESTS = "the digests of the file before and after"
_DEVICE_FIELDS = {
    on_device.LINK: ("device", "net_health"),
    on_device.RESET: ("device", "answer"),
    on_device.REBOOT: ("boot",),
}
_CONDITION_FIELDS: Mapping[str, tuple[str, ...]] = {
    "slow-storage": ("mount", "opened_after"),
    "cpu-load": ("beside", "cores", "consumed"),
    "cpu-quota": ("group", "throttled"),
    "node-cpu-quota": ("quota", "throttled"),
    "dns-gone": ("cut", "before", "error", "reached"),
    "fd-limit": ("limit", "left"),
    "freeze": ("signal", "state"),
    "memory-load": ("resident",),
    "network-delay": ("by", "passed", "round_trip"),
    "network-loss": ("by", "passed", "sent", "lost"),
    "network-rate": ("kbit", "bytes"),
    "partition": ("lost", "ways", "connections", "echoes"),
    "port-blocked": ("port", "lost", "ways", "passing", "connections", "attempts", "attempts elsewhere"),
    **dict.fromkeys(MESH, ("uid", "pod", "injected")),
    "node-cordon": ("host", "unschedulable"),
    "public-fault": ("host", "fault id"),
    "storage-stall": ("mount", "frozen"),
}
_POD_FIELDS = ("pod", "told_by", "by")

BUILT_IN: Mapping[str, Proof] = {
    "kill": Proof("the kernel's exit status", ("signal",), _death),
    **{
        kind: Proof(
            "exit status and the rank's own record that it was about to end",
            ("signal", "code", "act"),
            _all(_death, _own_end, ends_as_shown),
        )
        for kind in OWN_ENDS
    },
    OOM: Proof(
        "exit status, the kernel's count of processes ended for want of memory in the rank's own group, and the rank's "
        "own record that it was about to end",
        ("signal", "code", "act", "oom_kill"),
        _all(_death, _own_end, ends_as_shown),
    ),
    on_node.SUSPEND: Proof(
        "the kernel's word that the process was stopped, and its silence until it was let go", ("signal",), _silent
    ),
    **{
        kind: Proof(
            "the rank's own record that it begins to wait, and its silence afterwards",
            ("act", "state"),
            _all(_hung, hangs_as_shown),
        )
        for kind in HANGS
    },
    **{
        kind: Proof(
            "the rank's own record of the value before and after, and a state that differs",
            ("what",),
            _all(_altered, agrees(ALTERED, *FACTS)),
        )
        for kind in ALTERING
    },
    SLOW: Proof(
        "the rank's own record of how long it waited, and the times of its steps",
        ("act", "factor", "steps"),
        _all(_slowed, agrees(ACTING, "act", "factor", "steps")),
    ),
    **{kind: Proof("the rank's own record of the error", ("raised",), _raised) for kind in RAISED},
    SPIKE: Proof(
        "the rank's own record of the factor, the norm of the reduced gradients",
        ("factor", "norm"),
        _all(_scaled, agrees(SCALED, "factor", "norm")),
    ),
    LINK: Proof("the rank's own record that its link is down", ("device",), _all(_severed, severed_as_shown)),
    PAUSE: Proof("the rank's own record of the pause", ("paused",), _paused),
    TERMINATE: Proof("the kernel's word that the signal was taken", ("signal",), _terminated),
    **{
        kind: Proof(
            "the kernel's refusal of a file there",
            ("refused", "directory" if kind == "no-permission" else "mount"),
            _storage,
        )
        for kind in REFUSALS
    },
    **{kind: Proof(SHOWN[kind][1], fields, _all(_condition, _silent)) for kind, fields in _CONDITION_FIELDS.items()},
    SKEW: Proof(SHOWN[SKEW][1], ("act", "seen"), _all(_condition, recorded(ACTING, "act", "seen"))),
    RESET: Proof(
        "the kernel's word on each connection, and that neither end has it any more", ("port", "reset", "left"), _reset
    ),
    **{kind: Proof(_DIGESTS, ("file", "step", "before", "after"), _damaged) for kind in DAMAGES},
    "rename-checkpoint": Proof(
        f"{_DIGESTS}, and the name that it has now", ("file", "renamed", "step", "before", "after"), _damaged
    ),
    "lose-checkpoint": Proof(
        "the directory of the rank's checkpoints, which is gone, and the files that were taken from it",
        ("directory", "removed"),
        _lost_files,
    ),
    **{kind: Proof(words, ("node",), _all(_death, _of_node, _silent)) for kind, words in on_node.PROOFS.items()},
    **{kind: Proof(words, _DEVICE_FIELDS[kind], _of_device) for kind, words in on_device.PROOFS.items()},
    **{kind: Proof(words, _POD_FIELDS, _all(_death, _of_cluster)) for kind, words in in_cluster.PROOFS.items()},
    in_cluster.DRAIN: Proof(
        f"{in_cluster.PROOFS[in_cluster.DRAIN]}, and the cordon of its node",
        (*_POD_FIELDS, "unschedulable"),
        _all(_death, _of_cluster),
    ),
    in_cluster.NOT_READY: Proof(in_cluster.PROOFS[in_cluster.NOT_READY], ("taints",), _of_cluster),
}
"""By kind. No other package can take one of these names."""

effect_doubts = _all(_lost_files, _damaged, _silent)
"""What speaks against a fault by its effect, whatever its kind: asked of the kinds of other packages beside their own
proof."""


def proof_of(kind: str, package: str = "", registered: Registry | None = None) -> Proof:
    """The proof of a fault kind.

    ``package`` is the one that the run had the kind from, where the run says so. ``registered`` stands in for the
    installed proofs. Raises NoProof where there is none, or none that can be used.
    """
    if (built_in := BUILT_IN.get(kind)) is not None:
        return built_in
    try:
        found = (registry(GROUP) if registered is None else registered).load(kind)
    except UnknownName:
        raise NoProof(_nothing_registered(kind, package)) from None
    except RegistryError as error:
        raise NoProof(str(error)) from error
    except Exception as error:  # whatever another package's module does when it is imported
        raise NoProof(f"the proof of {kind} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, Proof):
        raise NoProof(f"what is registered as the proof of {kind} is no chaos.evidence.proof.Proof")
    return found


def why_unproven(kind: str, evidence: Mapping[str, object]) -> str | None:
    """Why evidence proves nothing by itself, where no history is judged: no proof, or not what it needs. Else None."""
    try:
        proof = proof_of(kind)
    except NoProof as error:
        return str(error)
    lacking = lacking_evidence(proof, evidence)
    return None if lacking is None else f"its evidence {lacking}"


def _nothing_registered(kind: str, package: str) -> str:
    try:
        here = package_of("faults", kind)
    except RegistryError:
        here = None
    if here is not None:
        return f"no proof of the fault kind {kind} is registered: {here} has to bring one ({GROUP}, docs/extending.md)"
    whose = f"the run had it from {package}, which is not installed here" if package else "its package is not installed"
    return f"no proof of the fault kind {kind} is registered here: {whose}; install it and judge the run again"
