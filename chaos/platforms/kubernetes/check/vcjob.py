"""Part of the check of a manifest: settings of a Volcano job that MindCluster's rescheduling contradicts.

Source: MindCluster, the page on a job's YAML, table of vcjob (``policies``, ``recover_policy_path``), August 2026.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.check.pods import Template
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem

_EVENT = "PodFailed"
_DEFAULT_EVENT = "PodEvicted"
_DEFAULT_ACTION = "RestartJob"


def vcjob_problems(job: Placed, pods: list[Template]) -> Iterator[Problem]:
    """Yield policies by which Volcano acts beside MindCluster."""
    policies = job.at("spec", "policies")
    pairs = [_policy(entry) for entry in policies.values()] if policies is not None else []
    retries = job.at("metadata", "labels", names.FAULT_RETRY_TIMES)
    action = _required_action(job, pods)
    if (retries is not None and str(retries.data) != "0") or action != "Ignore":
        if (_EVENT, action) not in pairs or len(pairs) > 1:
            yield (policies or job.nearest_value("spec")).problem(
                f"policies say {_in_words(pairs)}; with {_because(action)} Volcano must have {_EVENT} with {action} "
                "alone, or it restarts the job by itself beside MindCluster",
                f"policies: [{{event: {_EVENT}, action: {action}}}]",
            )
    elif policies is not None and pairs and _on(job.at("metadata", "labels", names.POD_RESCHEDULING)):
        yield policies.problem(
            f"policies say {_in_words(pairs)}; with pod-rescheduling and without fault-retry-times there must be none",
            "leave policies out",
        )


def _required_action(job: Placed, pods: list[Template]) -> str:
    """Return RestartTask where a pod alone is rescheduled (``recover_policy_path: pod``), else Ignore."""
    places = [job, *(pod.place for pod in pods)]
    paths = [place.at("metadata", "annotations", names.RECOVER_POLICY) for place in places]
    return "RestartTask" if any(path is not None and path.data == "pod" for path in paths) else "Ignore"


def _because(action: str) -> str:
    return names.FAULT_RETRY_TIMES if action == "Ignore" else f"{names.RECOVER_POLICY}: pod"


def _policy(entry: Placed) -> tuple[str, str]:
    event, action = entry.at("event"), entry.at("action")
    return (
        _DEFAULT_EVENT if event is None else str(event.data),
        _DEFAULT_ACTION if action is None else str(action.data),
    )


def _in_words(pairs: list[tuple[str, str]]) -> str:
    return ", ".join(f"{event} with {action}" for event, action in pairs) or "nothing"


def _on(label: Placed | None) -> bool:
    return label is not None and label.data == "on"
