"""MindFormers' Trainer with the agent as a callback: what it does not see is unknown, what is wrong is a failure."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.doctor import Machine, needs_of, probe
from chaos.rehearsal.mindformers.job import KIND
from tests.rehearsal.kit import Chaos, Done, Once, Run, checks_of, said

LACKING = [result.seen for result in probe(needs_of(KIND), Machine()) if not result.ok]
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(LACKING), reason=", ".join(LACKING))]

NAME = "mindformers-callback-trainer"
WEIGHT = "model.layers.0.attention.wq.weight"

Event = dict[str, Any]
Change = Callable[[Event], Event | None]

WITHOUT_BASELINE = """\
chaos: 1
name: forgetful
baseline: none
job:
  kind: mindformers-rehearsal
  config: llama.yaml
  loading: callback
  steps: 12
  environment: {{PYTHONPATH: {modules}}}
faults:
  - {{kind: kill, target: {{rank: 0}}, trigger: {{step: 8}}}}
expect: {{mechanism: none, resume: {{step: 7}}}}
"""


@pytest.fixture(scope="module")
def good(once: Once) -> Done:
    """A cell of the scenario as it is shipped, run with its fault-free run."""
    return once(NAME, lambda chaos: chaos.run(f"{NAME}.yaml", "--cell", "config=llama.yaml"))


def changed(good: Done, tmp_path: Path, file: str, change: Change) -> Run:
    """A copy of the good run with other events in one file of its history. Something must change."""
    run = Run(shutil.copytree(good.run.path, tmp_path / good.run.path.name))
    (path,) = run.path.glob(f"history/{file}")
    before = [json.loads(line) for line in path.read_bytes().rstrip(b"\0").splitlines()]
    after = [event for one in before if (event := change(dict(one))) is not None]
    assert after != before
    lines = [json.dumps({**event, "seq": number}, separators=(",", ":")) for number, event in enumerate(after)]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return run


def test_it_passes_with_kernels_alone_in_the_place_of_others(good: Done) -> None:
    assert good.code == 0, good.errors + good.output
    assert [stand_in["layer"] for stand_in in good.run.result["simulated"]] == ["kernels"]
    loads = [event.data["path"] for event in good.run.history.events if event.event == "load.end"]
    assert loads and all("checkpoint/rank_0" in str(path) for path in loads)


def test_that_gradients_are_not_judged_is_said_beside_the_pass(good: Done) -> None:
    left = {(exclusion["name"], exclusion["what"]) for exclusion in good.run.result["not_checked"]}
    assert ("loss", "gradients") in left


def test_a_weight_that_is_another_after_the_resume_is_a_failure(fresh: Chaos, good: Done, tmp_path: Path) -> None:
    def change(event: Event) -> Event:
        if (event["event"], event.get("step")) != ("digest", 9):
            return event
        assert WEIGHT in event["parameters"]
        return {**event, "parameters": {**event["parameters"], WEIGHT: "0" * 32}}

    done = fresh.analyze(changed(good, tmp_path, "resume-rank_0-*.jsonl", change))
    assert done.code == 1, done.output
    failed = checks_of(done.json, "fail")
    assert {check["name"] for check in failed} == {"checkpoint", "loss"}
    assert all(WEIGHT in said([check]) for check in failed)


def test_a_load_that_the_agent_has_not_seen_is_unknown(fresh: Chaos, good: Done, tmp_path: Path) -> None:
    """The callback has to hook functions that MindFormers has imported by name before it came."""

    def unseen(event: Event) -> Event | None:
        return None if event["event"].startswith("load.") else event

    done = fresh.analyze(changed(good, tmp_path, "resume-rank_0-*.jsonl", unseen))
    assert done.code == 2, done.output
    assert "no load of rank 0 is recorded" in said(checks_of(done.json, "unknown"))


def test_a_resume_without_the_agent_is_unknown(fresh: Chaos, good: Done, tmp_path: Path) -> None:
    run = Run(shutil.copytree(good.run.path, tmp_path / good.run.path.name))
    (path,) = run.path.glob("history/resume-rank_0-*.jsonl")
    path.unlink()
    done = fresh.analyze(run)
    assert done.code == 2, done.output
    assert "no history of rank 0 in attempt resume" in said(checks_of(done.json, "unknown"))


def test_an_agent_that_did_not_come_in_proves_nothing(fresh: Chaos, tmp_path: Path) -> None:
    """The job trains to its end unharmed; that is neither a recovery nor a failure of one."""
    (tmp_path / "sitecustomize.py").write_text("import os\nos.environ.pop('CHAOS_AGENT', None)\n", "utf-8")
    scenario = tmp_path / "forgetful.yaml"
    scenario.write_text(WITHOUT_BASELINE.format(modules=tmp_path), "utf-8")
    done = fresh.run(scenario)
    assert done.code == 2, done.output
    result = done.run.result
    assert checks_of(result, "fail") == []
    message = said(checks_of(result, "unknown"))
    for reason in (
        "history: the harness and every rank have recorded | no history of rank 0 in attempt train",
        "the launcher ended (exit code 0), and rank 0 never joined",
        "the planned fault was not injected",
        "the history has no start of attempt resume",
    ):
        assert reason in message
