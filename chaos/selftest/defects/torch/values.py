"""Defects of a job of PyTorch in which a rank's gradients spike: the spike's evidence, and what must hold after it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.defect import file_defect
from chaos.selftest.records import Records, recorded

_VICTIM, _STEP = 1, 6


_defect = partial(file_defect, base="live-torch-spike")
_injection = partial(_defect, check="injection", verdict="unknown")


def _not_scaled(records: Records) -> None:
    records.drop(records.all("fault.scaled"))


def _scaled_by_one(records: Records) -> None:
    records.first("fault.scaled")["factor"] = records.first("fault.landed")["evidence"][0]["factor"] = 1.0


def _scaled_again(records: Records) -> None:
    """Scale the gradients of the next step as well."""
    once = records.first("fault.scaled")
    kept = {key: value for key, value in once.items() if key not in ("mono", "wall", "seq")}
    records.insert(records.first("step.begin", rank=_VICTIM, step=_STEP + 1), **{**kept, "step": _STEP + 1})


def _without_effect(run_dir: Path) -> None:
    """Let the update of the step be that of the fault-free run."""
    baseline = Records(run_dir, baseline=True)
    state = baseline.digest(_VICTIM, _STEP)["parameters"]
    recorded(lambda records: records.digest(_VICTIM, _STEP).update(parameters=state))(run_dir)


def _another_state_before(records: Records) -> None:
    records.digest(_VICTIM, _STEP - 1)["parameters"]["0.weight"] = "0" * 32


def _on_one_rank_only(records: Records) -> None:
    """Let the spike come to one rank's update only, as where the gradients are not reduced."""
    records.digest(2, _STEP)["parameters"]["0.weight"] = "0" * 32


def _not_finite(records: Records) -> None:
    records.digest(0, _STEP + 2)["loss"] = "nan"


DEFECTS = (
    _injection(
        "torch-spike-not-made",
        "Rank 1 says that its gradients spiked, and has not scaled them.",
        recorded(_not_scaled),
        "rank 1's own history has no gradients that it scaled",
    ),
    _injection(
        "torch-spike-by-one",
        "Rank 1 has scaled its gradients by 1.",
        recorded(_scaled_by_one),
        "rank 1 scaled its gradients by 1.0: that changes nothing",
    ),
    _injection(
        "torch-spike-without-effect",
        "Rank 1 has scaled its gradients, and its update is that of the fault-free run.",
        _without_effect,
        "rank 1's state after step 6 is the fault-free run's: the fault changed nothing that counts",
    ),
    _injection(
        "torch-spike-in-another-state",
        "The weights of rank 1 were not those of the fault-free run before the spike.",
        recorded(_another_state_before),
        "rank 1's 0.weight was already another than the fault-free run's after step 5",
    ),
    _defect(
        "torch-spike-made-again",
        "Rank 1 scales its gradients in the next step as well.",
        recorded(_scaled_again),
        "scaled too often on rank 1",
        check="injection",
    ),
    _defect(
        "torch-spike-on-one-rank",
        "Rank 2 has other weights than the other ranks after the step with the spike.",
        recorded(_on_one_rank_only),
        "0.weight",
        check="consistency",
    ),
    _defect(
        "torch-spike-gives-nan",
        "The loss of rank 0 is not a number two steps after the spike.",
        recorded(_not_finite),
        "nan",
        check="loss",
    ),
)
