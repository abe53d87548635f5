"""Looking for scenarios does not load the libraries that reading them needs."""

from __future__ import annotations

import subprocess
import sys


def test_finding_imports_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys, chaos.scenario.find, chaos.scenario.errors, chaos.scenario.names\n"
        "print([name for name in ('pydantic', 'yaml', 'chaos.scenario.models.scenario') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
