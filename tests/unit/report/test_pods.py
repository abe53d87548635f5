"""A reader sees for each recovery what became of the job's pods, and result.json gives it back."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from chaos.report.analyze import analyze
from chaos.report.result_file import read_result
from chaos.report.terminal import print_result
from tests.kit.runs.good_run import good_run
from tests.kit.runs.run_in_pods import in_pods, replaced, restarted


def test_the_report_says_which_pod_was_replaced_by_which_and_which_was_not(tmp_path: Path) -> None:
    run = in_pods(good_run())
    replaced(run, 1, 11.0)
    result = analyze(run.write(tmp_path))
    assert result.verdict == "pass"
    data = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert [(pod["recovery"], pod["mechanisms"], pod["node"], pod["what"]) for pod in data["pods"]] == [
        (1, ["TTP"], 0, "untouched"),
        (1, ["TTP"], 1, "replaced"),
    ]
    assert data["pods"][1]["before"] == {"name": "pod-1", "uid": "uid-1", "host": "worker-1"}
    assert data["pods"][1]["after"] == {"name": "pod-1-b", "uid": "uid-1-b", "host": "worker-9"}
    assert read_result(tmp_path) == result
    out = io.StringIO()
    print_result(result, Console(file=out, width=60))
    assert "recovery 1 by TTP: the pod of node 0: untouched: pod-0 (uid-0) on worker-0\n" in out.getvalue()
    message = "the pod of node 1: replaced: pod-1 (uid-1) on worker-1 → pod-1-b (uid-1-b) on worker-9\n"
    assert f"recovery 1 by TTP: {message}" in out.getvalue()


def test_a_container_that_was_started_again_is_told_apart_from_another_pod(tmp_path: Path) -> None:
    run = in_pods(good_run())
    restarted(run, 1, 11.0)
    result = analyze(run.write(tmp_path))
    assert [(pod.what, pod.before == pod.after) for pod in result.pods] == [("untouched", True), ("restarted", True)]
    out = io.StringIO()
    print_result(result, Console(file=out, width=200))
    assert "the pod of node 1: started again in place: pod-1 (uid-1) on worker-1: 0 → 1 restarts\n" in out.getvalue()


def test_of_a_job_in_no_pods_nothing_is_said(tmp_path: Path) -> None:
    assert analyze(good_run().write(tmp_path)).pods == ()
