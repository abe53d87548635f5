"""Rules over several keys that need no topology: values that no cluster or job of the written size can have.

Rules read the plain data and not the model, so that they also work if other parts of the file are wrong. A rule
whose own inputs have the wrong type says nothing: the model has reported that.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

from chaos.scenario.errors import quote, suggest
from chaos.scenario.lines import Path
from chaos.scenario.models.scenario import Parallel
from chaos.scenario.models.terms import MEASURES
from chaos.scenario.names import KnownNames
from chaos.scenario.rules_base import Report, listed, mapped, rank_range, text, whole
from chaos.scenario.rules_faults import check_faults

SECTIONS = frozenset({"cluster", "job", "faults", "allow", "expect", "compare", "finding", "failing"})
"""Top keys that the rules read."""

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(data: dict[str, Any], names: KnownNames, report: Report) -> None:
    """Report every broken rule of one cell."""
    _check_cluster(mapped(data.get("cluster")), report)
    _check_job(mapped(data.get("job")), report)
    check_faults(data, names, report)
    _check_expect(data, report)
    _check_compare(data, report)
    check_finding(data, report)
    for index, name in enumerate(listed(data.get("allow"))):
        if names.fault_kinds is not None and text(name) is not None and name not in names.fault_kinds:
            message, hint = f"allow names no fault kind {quote(name)}", suggest(name, names.fault_kinds, "fault kinds")
            report(("allow", index), message, hint)
    check_name(("cluster", "platform"), data, names.platforms, "platform", report)
    check_name(("job", "kind"), data, names.job_kinds, "job kind", report)


def check_name(path: Path, data: Any, known: Any, what: str, report: Report) -> None:
    """Report a name that is written and not registered."""
    for part in path:
        data = mapped(data).get(str(part))
    name = text(data)
    if known is not None and name is not None and name not in known:
        report(path, f"there is no {what} {quote(name)}", suggest(name, known, f"{what}s"))


def _check_cluster(cluster: dict[str, Any], report: Report) -> None:
    ranks, nodes = whole(cluster.get("ranks")), whole(cluster.get("nodes", 1))
    if ranks and nodes and ranks % nodes:
        report(("cluster", "nodes"), f"{ranks} ranks cannot be spread evenly over {nodes} nodes")
    written = cluster.get("parallel")
    if not isinstance(written, dict) or not written.keys() <= Parallel.model_fields.keys():
        return  # With a misspelled size the others would seem wrong too.
    path: Path = ("cluster", "parallel")
    sizes = [whole(written.get(key, 1)) for key in ("data_parallel", "model_parallel", "pipeline_stage")]
    dp, mp, pp = sizes
    if ranks and dp and mp and pp and dp * mp * pp != ranks:
        message = f"data_parallel {dp} x model_parallel {mp} x pipeline_stage {pp} is {dp * mp * pp}, not {ranks} ranks"
        report(path, message)
    shards = whole(written.get("optimizer_weight_shard_size"))
    if shards is None:
        return
    path = (*path, "optimizer_weight_shard_size")
    if written.get("enable_parallel_optimizer", False) is False:
        report(path, "optimizer_weight_shard_size has no effect without enable_parallel_optimizer: true")
    if shards > 0 and dp and dp % shards:
        report(path, f"optimizer_weight_shard_size {shards} does not divide data_parallel {dp}")


def _check_job(job: dict[str, Any], report: Report) -> None:
    script = text(job.get("script"))
    if script is not None and (why := _script_problem(script)):
        report(("job", "script"), f"script {quote(script)} {why}", "give a path below the scenario file's directory")
    config = text(job.get("config"))
    if config is not None and not config.strip():
        report(("job", "config"), f"config {quote(config)} names no file")
    for key in ("overrides", "checkout"):
        if job.get(key) and "config" not in job:
            report(("job", key), f"{key} has no effect without job.config", on_key=True)
    if job.get("compile_cache") is True and job.get("graph", False) is False:
        report(("job", "compile_cache"), "nothing is compiled, so there is nothing to keep", "set job.graph: true")
    if job.get("supervised") is True and "command" not in job:
        report(("job", "supervised"), "no launcher of your own starts the ranks again", "name it: job.command")
    if job.get("rank_variables") and "command" not in job:
        report(("job", "rank_variables"), "rank_variables has no effect without job.command", on_key=True)
    for key, value in mapped(job.get("rank_variables")).items():
        for name in (key, text(value)):
            if name is not None and not _ENVIRONMENT_NAME.fullmatch(name):
                path: Path = ("job", "rank_variables", key)
                report(path, f"{quote(name)} cannot name an environment variable", on_key=name == key)
    for name in mapped(job.get("environment")):
        if not _ENVIRONMENT_NAME.fullmatch(name):
            report(("job", "environment", name), f"{quote(name)} cannot name an environment variable", on_key=True)


def _script_problem(script: str) -> str:
    normal = posixpath.normpath(script.replace("\\", "/"))
    if not script.strip() or normal == ".":
        return "names no file"
    if normal.startswith("/") or re.match(r"[A-Za-z]:", normal):
        return "is an absolute path"
    return "leads out of the scenario's directory" if normal == ".." or normal.startswith("../") else ""


def _check_expect(data: dict[str, Any], report: Report) -> None:
    expect = mapped(data.get("expect"))
    ranks = whole(mapped(data.get("cluster")).get("ranks"))
    steps = whole(mapped(data.get("job")).get("steps"))
    for part in ("checkpoint", "resume"):
        step = whole(mapped(expect.get(part)).get("step"))
        if step is not None and steps is not None and step > steps:
            report(("expect", part, "step"), f"step {step} of {steps}: the job trains {steps} steps")
    rank_range(listed(mapped(expect.get("checkpoint")).get("ranks")), ("expect", "checkpoint", "ranks"), ranks, report)


def _check_compare(data: dict[str, Any], report: Report) -> None:
    compared = mapped(data.get("compare"))
    axes = mapped(data.get("matrix"))
    axis = text(compared.get("axis"))
    if axis is not None and axis not in axes:
        hint = suggest(axis, axes, "axes") if axes else "give the scenario a matrix"
        report(("compare", "axis"), f"there is no axis {quote(axis)} in the matrix", hint)
    elif axis is not None and (count := len(listed(axes[axis]))) > 2:  # one value is left where it was pinned
        report(("compare", "axis"), f"axis {quote(axis)} has {count} values: a comparison is of two")
    for name in mapped(compared.get("at_most")):
        if name not in MEASURES:
            message = f"there is no measure {quote(name)}"
            report(("compare", "at_most", name), message, suggest(name, MEASURES, "measures"), on_key=True)


def check_finding(data: dict[str, Any], report: Report) -> None:
    """Report a finding without the checks that fail by it: it would excuse any failure."""
    if data.get("finding") is not None and data.get("failing", []) == []:
        hint = "add the key failing, for example failing: [loss]"
        report(("finding",), "a finding needs the checks that fail by it", hint, on_key=True)
    if data.get("finding") is None and "failing" in data:
        report(("failing",), "failing has no effect without finding", on_key=True)
    finding = mapped(data.get("finding"))
    if finding.get("with_vendor") and finding.get("sdk") is not None:
        hint = "name all checks in failing" if finding["sdk"] == "vendor" else "take it out"
        report(("finding", "with_vendor"), f"the finding is of the SDK {finding['sdk']} alone", hint, on_key=True)
