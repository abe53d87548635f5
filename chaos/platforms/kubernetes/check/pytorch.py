"""Part of the check of a manifest: the environment that Ascend Operator gives an AscendJob of PyTorch.

The operator adds its variables behind those of the manifest, where the last one counts; what the start command exports
replaces both. A value of the manifest's own that differs is lost, or undoes the recovery.

Sources: ``ascend-operator/pkg/controllers/v1/env.go`` (``addProcessRecoverEnv``), MindCluster's pages on process-level
recovery and on environment variables, MindSpeed-LLM's adapter of MindIO TFT.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from chaos.platforms.kubernetes import names
from chaos.platforms.kubernetes.check.commands import shell_script
from chaos.platforms.kubernetes.check.pods import Template
from chaos.platforms.kubernetes.documents import Placed
from chaos.scenario.errors import Problem

_SWITCHES = "HIGH_AVAILABILITY"
_IN_PLACE = "ENABLE_RESTART_FAULT_PROCESS"
_AGENT = "ELASTIC_PROCESS_RECOVER_ENABLE"
_RECOVER = "PROCESS_RECOVER"
_TASKD = "TASKD_PROCESS_ENABLE"
_WATCHDOG = "HCCL_ASYNC_ERROR_HANDLING"
_TTP_PORT = "TTP_PORT"
_NO_CACHE = "PYTORCH_NO_NPU_MEMORY_CACHING"
_ELASTIC = "elastic-training"
_WORDS = {"exit": "recover", "recover-in-place": "recover"}
"""Strategy → word of HIGH_AVAILABILITY, where the two differ."""
_EXPORT = re.compile(r"(?:^|[\s;&])export\s+([^;&|\n]+)")
_SEVERAL_NODES = {
    "recover": "a new process takes the state from the other nodes",
    _ELASTIC: "the job goes on with the other nodes",
}


def given(strategies: Sequence[str], *, hot_switch: bool = False) -> Mapping[str, str]:
    """Return the variables that Ascend Operator adds for these strategies, known ones only.

    A hot switch of cards that are not healthy adds those of ``recover``; beside strategies its HIGH_AVAILABILITY and
    theirs are both there, and which comes last is not known.
    """
    known = [strategy for strategy in strategies if strategy in names.STRATEGIES]
    if hot_switch:
        switch = {} if known else {_SWITCHES: "recover"}
        others = {name: value for name, value in given(known).items() if name != _SWITCHES}
        return {_RECOVER: "on", _AGENT: "1", **switch, **others}
    if not known:
        return {}
    words = sorted({_WORDS.get(strategy, strategy) for strategy in known})
    variables = {_RECOVER: "on", _SWITCHES: ",".join(words), _WATCHDOG: "0"}
    if set(known) != {_ELASTIC}:
        variables[_AGENT] = "1"
    if "recover-in-place" in known:
        variables[_IN_PLACE] = "on"
    return variables


def pytorch_problems(job: Placed, pods: Sequence[Template], strategies: Sequence[str]) -> Iterator[Problem]:
    """Yield what in an AscendJob of PyTorch contradicts its strategies."""
    yield from _nodes(job, pods, strategies)
    healthy = job.at("metadata", "labels", names.SUB_HEALTHY)
    hot_switch = healthy is not None and healthy.data == "hotSwitch"
    allowed = (*strategies, *(("hotSwitch",) if hot_switch else ()))
    for pod in pods:
        container = pod.container
        if container is None or not pod.trains:
            continue
        for name, value, place, exported in _set_here(container):
            how = f"the start command exports {name}={value}" if exported else f"{name} is {value!r}"
            operators = given(strategies, hot_switch=hot_switch).get(name)
            if operators is not None and not _same(name, value, operators):
                yield _against_operator(name, how, place, operators, exported=exported, allowed=allowed)
            elif operators is None:
                yield from _variable(name, value, how, place, allowed)


def _nodes(job: Placed, pods: Sequence[Template], strategies: Sequence[str]) -> Iterator[Problem]:
    """Yield strategies that need a second node, where there is one."""
    if sum(pod.replicas for pod in pods if pod.trains) != 1:
        return
    for strategy, why in _SEVERAL_NODES.items():
        if strategy in strategies:
            yield job.nearest_value("metadata", "annotations", names.RECOVER_STRATEGY).problem(
                f"{strategy} needs two nodes or more, and one pod trains: {why} (MindIO TFT, constraints)",
                f"leave {strategy} out, or let Worker have pods",
            )


def _set_here(container: Placed) -> Iterator[tuple[str, str, Placed, bool]]:
    """Yield each variable of the manifest with its value: of the environment, then of the start command's exports."""
    entries = container.at("env")
    for entry in entries.values() if entries is not None else ():
        name, value = entry.at("name"), entry.at("value")
        if name is not None and value is not None and isinstance(value.data, str):
            yield str(name.data), value.data, value, False
    script = shell_script(container)
    for match in _EXPORT.finditer(str(script.data)) if script is not None else ():
        try:
            words = shlex.split(match[1], comments=True)
        except ValueError:
            continue
        for word in words:
            name_text, equals, text = word.partition("=")
            # What a shell fills in is not known here.
            if equals and script is not None and "$" not in text:
                yield name_text, text, script, True


def _against_operator(
    name: str, how: str, place: Placed, operators: str, *, exported: bool, allowed: Sequence[str]
) -> Problem:
    """Return the problem of a variable that Ascend Operator sets otherwise."""
    told = f"{name}={operators} for {', '.join(allowed)}"
    if exported:
        return place.problem(f"{how}, which replaces Ascend Operator's {told}", "leave the export out")
    return place.problem(
        f"{how}, which is lost: Ascend Operator adds {told} behind it, and the last one counts", "leave it out"
    )


def _variable(name: str, value: str, how: str, place: Placed, allowed: Sequence[str]) -> Iterator[Problem]:
    """Yield what is wrong about this value of a variable that Ascend Operator does not set."""
    if name in (_RECOVER, _AGENT, _IN_PLACE) and value in ("on", "1"):
        lacks = "recover-in-place" if name == _IN_PLACE else "any strategy"
        yield place.problem(
            f"{how}, but recover-strategy does not have {lacks}: ClusterD never asks for it",
            "write the strategy into the annotation, and Ascend Operator sets the variable",
        )
    elif name == _TASKD:
        yield from _taskd(how, value, place, allowed)
    elif name == _TTP_PORT and value != str(names.TTP_PORT) and allowed:
        yield place.problem(
            f"{how}: TaskD starts the controller of MindIO TFT there, and MindSpeed-LLM's ranks look for it at "
            f"{names.TTP_PORT} (tft_init_controller_processor)",
            f"write {names.TTP_PORT} for MindSpeed-LLM",
        )
    elif name == _NO_CACHE and "retry" in allowed:
        yield place.problem(
            f"{how}: retry repairs memory that torch_npu's allocator knows, so the variable must not be set",
            "leave it out",
        )


def _taskd(how: str, value: str, place: Placed, allowed: Sequence[str]) -> Iterator[Problem]:
    """Yield a switch of TaskD against the strategies: it must be off where there is none, and not off otherwise."""
    if allowed and value == "off":
        yield place.problem(
            f"{how}: TaskD then carries out no strategy, and {', '.join(allowed)} is allowed", "leave it out"
        )
    elif not allowed and value == "on":
        yield place.problem(
            f"{how}, and there is no recover-strategy: TaskD in torchrun then waits for orders of ClusterD's",
            f'write {_TASKD}="off", or a recover-strategy',
        )


def _same(name: str, value: str, other: str) -> bool:
    """Return whether two values mean the same: HIGH_AVAILABILITY is a set of words, in any case."""
    if name != _SWITCHES:
        return value == other
    return {word.strip().lower() for word in value.split(",")} == set(other.split(","))
