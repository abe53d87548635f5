"""Links with the controller that are reset: ranks that never register again are lost, and such a run fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.doctor import Machine, probe
from tests.kit.shipped import shipped
from tests.rehearsal.kit import Chaos, checks_of

LACKING = [result for result in probe(("network-namespaces", "connection-reset"), Machine()) if not result.ok]
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")]

DEAF = """
def deaf(agent):
    def change(module):
        module.Processor._find_controller_again = lambda self: self._closing.wait()

    agent.imports.watch("chaos.rehearsal.ttp.processor", change)
"""
"""A rank that does not look for the controller again."""


def test_ranks_that_never_register_again_are_not_passed_over(fresh: Chaos, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "never_again.py").write_text(DEAF)
    text = shipped("connection-reset").read_text()
    text = text.replace("kind: plain", "kind: defective-plain")
    text = text.replace("arguments: [", "arguments: [--defect=never_again:deaf, ")
    (tmp_path / "deaf.yaml").write_text(text)
    done = fresh(
        *("run", tmp_path / "deaf.yaml", "--json", "--cores", "1", "--reports", fresh.reports, "--baseline", "none"),
        env={"PYTHONPATH": str(modules)},
    )
    result = done.run.result
    assert (done.code, result["verdict"]) == (1, "fail"), done.errors
    assert any(check["name"] == "mechanism" and "TTP acted" in check["seen"] for check in checks_of(result, "fail"))
    assert done.run.history.select("fault.landed", kind="connection-reset")
    assert done.run.left() == []
