"""A rehearsal's script starts MindSpore's fault tolerance for every mechanism that needs the SDK."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from chaos.plan.recovery.mechanism import NEEDS
from chaos.rehearsal import job

SCRIPTS = Path(job.__file__).parent / "jobs"


@pytest.mark.parametrize("script", ["mnist.py", "sliced.py"])
def test_a_script_asks_for_fault_tolerance_whatever_needs_the_sdk(script: str) -> None:
    """Pauses alone were forgotten where weights are sliced: no order to pause reached the ranks."""
    conditions = [
        node.test
        for node in ast.walk(ast.parse((SCRIPTS / script).read_text("utf-8")))
        if isinstance(node, ast.If) and "TrainFaultTolerance(" in ast.unparse(node.body)  # type: ignore[arg-type]
    ]
    (condition,) = conditions
    named = {node.value for node in ast.walk(condition) if isinstance(node, ast.Constant)}
    assert set(NEEDS["MindIO"]) <= named
