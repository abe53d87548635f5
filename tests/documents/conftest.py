"""A directory for a page's files and commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, Block, Perform
from tests.kit.checkpoints.saved_checkpoints import save
from tests.kit.jobs.running_jobs import OwnJob, own_job

WAIT_SECONDS = 600.0
"""For one block: only one that would never end is ended by it."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An empty directory in which the repository's scenarios, tests and documents are found."""
    for name in ("scenarios", "tests", "docs", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    for script in ("train.py", "jobs/train.py", "pretrain_gpt.py"):  # scripts of a reader, named in the pages
        (tmp_path / script).parent.mkdir(exist_ok=True)
        (tmp_path / script).touch()
    return tmp_path


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a reader, who has the key that inventories name."""
    directory = tmp_path_factory.mktemp("home")
    key = directory / ".ssh" / "id_ed25519"
    key.parent.mkdir(mode=0o700)
    key.touch(mode=0o600)
    return directory


@pytest.fixture
def running_job(place: Path) -> Iterator[Callable[[], None]]:
    """Starts a job that the pages about running jobs name: two ranks that have saved and do nothing."""
    with ExitStack() as jobs:
        started: list[OwnJob] = []

        def start() -> None:
            if not started:
                started.append(jobs.enter_context(own_job(place, logs="output/msrun_log")))
                save(place / "checkpoints")

        yield start


@pytest.fixture
def perform(place: Path, home: Path, running_job: Callable[[], None]) -> Perform:
    """Put a block's file into the place, or run its commands there as a reader would."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        # What a page makes is installed as pip would: the package and its metadata on the path.
        "PYTHONPATH": os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "XDG_CACHE_HOME": str(place / "cache"),
        "COLUMNS": "160",
        "HOME": str(home),
    }

    def perform(block: Block) -> str:
        if block.file is not None:
            path = place / block.file
            assert path.resolve().is_relative_to(place), f"{block.where}: {block.file} is outside"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
            if block.file == "pyproject.toml":
                _register(place, block.text)
            return ""
        if "--job output/msrun_log" in block.text:
            running_job()
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert done.returncode == block.code, f"{block.where}: {block.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return perform


def _register(place: Path, project: str) -> None:
    """The metadata that ``pip install`` would write for this pyproject.toml: name, version and entry points."""
    name, version = (re.search(rf'^{key} = "([^"]+)"', project, re.MULTILINE) for key in ("name", "version"))
    assert name is not None and version is not None
    metadata = place / f"{name[1].replace('-', '_')}-{version[1]}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name[1]}\nVersion: {version[1]}\n")
    points = []
    for group, rows in re.findall(r'^\[project\.entry-points\."([^"]+)"\]\n((?:[^\[\n].*\n)*)', project, re.MULTILINE):
        points += [f"[{group}]", *(row.replace('"', "") for row in rows.splitlines() if row.strip())]
    (metadata / "entry_points.txt").write_text("\n".join(points) + "\n")
