"""A project with a scenario and a command in place of ``chaos`` that starts no job."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest

import chaos.pytest_plugin.needs
import chaos.run.prepare.prepare
from chaos.scenario.names import KnownNames

SCENARIO = """\
chaos: 1
name: {name}
{head}
cluster: {{ranks: 4, parallel: {{data_parallel: 4}}}}
job: {{steps: 12, protection: [TTP]}}
faults:
  - kind: kill
    target: {{rank: {victim}}}
    trigger: {{step: 6}}
"""

# Any kinds are taken, and the machine is said to have everything: this is about the plugin, not about the registries.
CONFTEST = """\
import chaos.pytest_plugin.needs
import chaos.run.prepare.prepare
from chaos.scenario.names import KnownNames

chaos.run.prepare.prepare.known_names = KnownNames
chaos.pytest_plugin.needs.unmet_needs = lambda scenario, beside, reports: {lacking!r}
"""

FAKE = """\
import json, os, pathlib, signal, sys, time

answers = json.loads(pathlib.Path(r"{answers}").read_text())
arguments = sys.argv[1:]
with open(r"{calls}", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
cell = arguments[arguments.index("--cell") + 1] if "--cell" in arguments else ""
answer = answers.get(cell) or answers["*"]
sys.stderr.write(answer.get("errors", ""))
if answer.get("kill"):
    def ended(*_):
        pathlib.Path(r"{calls}").with_name("ended").touch()
        sys.exit(130)
    signal.signal(signal.SIGTERM, ended)
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()
if answer.get("hang"):
    def interrupted(*_):
        pathlib.Path(r"{calls}").with_name("interrupted").touch()
        sys.exit(130)
    signal.signal(signal.SIGINT, interrupted)
    os.kill(os.getppid(), signal.SIGINT)
    signal.pause()
if answer.get("result"):
    directory = answer.get("directory", "/r/run-1")
    entry = {{"scenario": "x", "cell": cell, "run": "run-1", "directory": directory, "result": answer["result"]}}
    print(json.dumps({{"cells": [entry] * answer.get("cells", 1), **answer.get("more", {{}})}}))
sys.exit(answer["status"])
"""

RECOVERY = {"mechanism": "TTP", "phases": {}, "total": 9.5, "reason": ""}
EMPTY: dict[str, Any] = {
    **{key: {} for key in ("plan", "baseline", "versions", "agent")},
    **{key: [] for key in ("faults", "checks", "simulated", "not_checked")},
    "schema_version": 1,
    "scenario": "kill-rank",
    "cell": "",
    "seed": 1,
    "recovery": RECOVERY,
}
"""What every result.json has; nothing happened in this run."""

CHECK = {
    "name": "checkpoint",
    "expected": "the checkpoint holds step 5",
    "seen": "it holds step 4",
    "where": ["scenario.yaml:7", "job/checkpoints/ttp_rank_0-1_5.ckpt"],
}


class Project:
    """A directory with a scenario, and what its fake ``chaos`` answers."""

    def __init__(self, pytester: pytest.Pytester, patches: pytest.MonkeyPatch) -> None:
        self.pytester = pytester
        self._patches = patches
        self.calls_file = pytester.path / "calls.jsonl"
        answers = pytester.path / "answers.json"
        fake = pytester.path / "fake_chaos.py"
        fake.write_text(FAKE.format(answers=answers, calls=self.calls_file))
        pytester.makeini(
            f"[pytest]\naddopts = --strict-markers -p no:randomly\nchaos_command = {sys.executable} {fake}\n"
        )
        self.machine_lacks([])
        self._answers = answers

    def machine_lacks(self, what: list[str]) -> None:
        """Make the machine lack something."""
        self.pytester.makeconftest(CONFTEST.format(lacking=what))
        self._patches.setattr(chaos.run.prepare.prepare, "known_names", KnownNames)
        self._patches.setattr(chaos.pytest_plugin.needs, "unmet_needs", lambda scenario, beside, reports: what)

    def scenario(self, name: str = "kill-rank", head: str = "", victim: str = "1") -> None:
        """Write scenarios/<name>.yaml."""
        folder = self.pytester.path / "scenarios"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(SCENARIO.format(name=name, head=head, victim=victim))

    def answer(
        self,
        verdict: str | None,
        status: int,
        cell: str = "*",
        sdk: str = "vendor",
        checks: Sequence[dict[str, Any]] = (),
        statement: str | None = None,
        **more: Any,
    ) -> None:
        """Say how a cell ends, and with which SDK it was run; ``*`` is for all that are not named.

        ``checks`` are statements beside the usual one, whose verdict is ``statement``, by default that of the run.
        """
        answers = json.loads(self._answers.read_text()) if self._answers.exists() else {}
        result = None
        if verdict is not None:
            result = {
                **EMPTY,
                "verdict": verdict,
                "checks": [
                    {**CHECK, "verdict": statement or verdict, "order": None if verdict == "pass" else 0},
                    *checks,
                ],
                "simulated": [] if sdk == "vendor" else [{"part": "mindio_ttp, timings fast", "layer": "SDK"}],
                "recovery": {**RECOVERY, "phases": {"detection": 0.51234, "load": None}},
            }
            if verdict != "pass":
                result["headline"] = {"id": "checkpoint-1", "check": "checkpoint", "text": "checkpoint: step 4, not 5"}
        answers[cell] = {"status": status, "result": result, **more}
        self._answers.write_text(json.dumps(answers))

    def calls(self) -> list[list[str]]:
        """Arguments of every call of the fake so far."""
        return [json.loads(line) for line in self.calls_file.read_text().splitlines()]

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest on scenarios/ in this process: a process of its own takes seconds to start."""
        return self.pytester.runpytest_inprocess("scenarios", "--noconftest", "-p", "no:cacheprovider", *arguments)

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """Run pytest on scenarios/ in a process of its own, which may have workers, be killed or be interrupted."""
        return self.pytester.runpytest_subprocess("scenarios", "-p", "no:cacheprovider", *arguments)
