"""Operator-level retry: HCCL's own second try of a communication operator, before any mechanism hears of the error.

HCCL repeats an operator that fails with an SDMA or RDMA CQE error, on the levels that HCCL_OP_RETRY_ENABLE names, such
as ``L0:0, L1:1, L2:1``. Only a retry that fails raises error 507904, which HCCE answers with a step-level recovery.
Source: MindCluster, process-level online recovery.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chaos.plan.draft import Draft
from chaos.plan.job_effect import COMMUNICATION_ERROR
from chaos.plan.problems import Problems
from chaos.scenario.models.scenario import Scenario

VARIABLE = "HCCL_OP_RETRY_ENABLE"
SUSPECT_REMOTE = "suspect-remote"
"""The fault kind of an error that MindSpore reports like a communication error (RS_HCCL_FAILED)."""

LEVELS = ("L0", "L1", "L2")
"""Levels of HCCL's operators, from the inside of a server outwards."""

_PART = re.compile(r"\s*(L\d+)\s*:\s*(\S+)\s*")


def check_op_retry(scenario: Scenario, problems: Problems) -> None:
    """Note a value that HCCL would not understand: the job would start all the same, and repeat nothing."""
    value = scenario.job.environment.get(VARIABLE)
    for text, problem in () if value is None else _wrong(value):
        problems.add(
            f"job.environment.{VARIABLE}",
            f"{VARIABLE}: {problem}",
            text=text,
            hint='write each level once with 0 or 1, such as "L0:0, L1:1, L2:1"',
        )


def introduce_op_retry(draft: Draft) -> Iterator[str]:
    """Yield the effect of the operator-level retry, where it is set or where a communication error comes."""
    errors = [fault for fault in draft.faults if fault.effect.raises == COMMUNICATION_ERROR]
    value = draft.scenario.job.environment.get(VARIABLE)
    if value is None and not errors:
        return
    on = [] if value is None else [level for level, state in _levels(value).items() if state == "1"]
    if on:
        yield (
            f"operator-level retry is on for {', '.join(on)} ({VARIABLE}): HCCL repeats an operator that fails with an "
            "SDMA or RDMA CQE error by itself, without any mechanism; only a retry that fails raises error 507904"
        )
    else:
        yield f"operator-level retry is off ({VARIABLE}), so HCCL repeats no operator by itself"
    for fault in errors:
        if fault.fault.kind == SUSPECT_REMOTE:
            yield (
                f"fault {fault.fault.id} is error 507057: HCCL repeats no operator for this error, and MindSpore "
                "reports it to the SDK like a failed communication, so the step-level recovery is expected"
            )
            continue
        yield (
            f"fault {fault.fault.id} is error 507904: HCCL has given up its operator, so the step-level recovery is "
            "expected, not the operator's own retry"
        )


def _levels(value: str) -> dict[str, str]:
    parts = (_PART.fullmatch(part) for part in value.split(","))
    return {part[1]: part[2] for part in parts if part is not None}


def _wrong(value: str) -> Iterator[tuple[str, str]]:
    levels: set[str] = set()
    for text in value.split(","):
        part = _PART.fullmatch(text)
        if part is None:
            yield text.strip(), f"{text.strip()!r} is not a level and its switch"
        elif part[1] not in LEVELS:
            yield part[1], f"there is no level {part[1]}, only {', '.join(LEVELS)}"
        elif part[2] not in ("0", "1"):
            yield part[2], f"level {part[1]} is switched by 0 or 1, not by {part[2]!r}"
        elif part[1] in levels:
            yield part[1], f"level {part[1]} is named twice"
        else:
            levels.add(part[1])
