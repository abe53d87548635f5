"""The agent runs on Python 3.9 and later with the standard library alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.agent.conftest import TREE

IMPORT_ALL = """
import sys, types
package = types.ModuleType("chaos"); package.__path__ = [sys.argv[1]]; sys.modules["chaos"] = package
before = set(sys.modules)
for name in sys.argv[2:]:
    __import__(name)
print(*sorted(name for name in set(sys.modules) - before if "." not in name))
"""


def modules() -> list[str]:
    files = [*sorted((TREE / "agent").glob("*.py")), *sorted((TREE / "agent" / "torch").glob("*.py"))]
    names = [path.relative_to(TREE).with_suffix("").as_posix() for path in files if path.stem != "__init__"]
    return [f"chaos.{name.replace('/', '.')}" for name in names]


def test_every_module_imports_without_site_packages(python: str) -> None:
    names = modules()
    assert "chaos.agent.start" in names
    # -I and -S: neither the environment nor site-packages nor the current directory can help.
    done = subprocess.run(
        [python, "-I", "-S", "-c", IMPORT_ALL, str(TREE), *names], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= sys.stdlib_module_names


def test_what_is_loaded_into_a_rank_compiles(python: str, tmp_path: Path) -> None:
    sources = [*(TREE / "agent").rglob("*.py"), *(TREE / "rehearsal").rglob("*.py")]
    script = "import sys\nfor path in sys.argv[1:]: compile(open(path, encoding='utf-8').read(), path, 'exec')"
    subprocess.run([python, "-I", "-c", script, *map(str, sources)], check=True, cwd=tmp_path)
    assert len(sources) > 20
