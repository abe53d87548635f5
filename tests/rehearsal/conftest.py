"""Fixtures of the tests that start real MindSpore jobs on the CPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from filelock import FileLock

from chaos.doctor import Machine, needs_of, probe
from chaos.rehearsal.job import KIND
from tests.rehearsal.kit import Chaos, Done, Run

# The scenarios here are started by the tests; as scenarios they are meant to go wrong.
collect_ignore = ["scenarios"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test here, and skip all where the machine lacks what the job needs.

    A test of the run that passed comes first and makes it; the others of that run come last, so nobody waits for it.
    """
    waiting = [item for item in items if "passed" in getattr(item, "fixturenames", ())]
    items[:] = [*waiting[:1], *(item for item in items if item not in waiting), *waiting[1:]]
    own = [item for item in items if _HERE in item.path.parents]
    lacking = [
        f"{result.need}: {result.seen}; {result.advice}" for result in probe(needs_of(KIND), Machine()) if not result.ok
    ]
    for item in own:
        item.add_marker("rehearsal")
        if lacking:
            item.add_marker(pytest.mark.skip(reason=f"this machine lacks {', '.join(lacking)}"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base


@pytest.fixture(scope="session")
def once(shared: Path) -> Callable[[str, Callable[[Chaos], Done]], Done]:
    """Make a run once for all workers; the others wait for it. It has a reports directory of its own."""

    def once(name: str, make: Callable[[Chaos], Done]) -> Done:
        place, outcome = shared / name, shared / f"{name}.json"
        with FileLock(shared / f"{name}.lock"):
            if not outcome.exists():
                place.mkdir(exist_ok=True)
                chaos = Chaos(place / "reports", place)
                try:
                    outcome.write_text(json.dumps(asdict(make(chaos))), "utf-8")
                finally:
                    chaos.close()
        return Done(**json.loads(outcome.read_text("utf-8")))

    return once


@pytest.fixture(scope="session")
def passed(once: Callable[[str, Callable[[Chaos], Done]], Done]) -> Done:
    """``chaos run kill-rank.yaml`` without a baseline in the cache: a run that passed, never to be changed."""
    done = once("passed", lambda chaos: chaos.run("kill-rank.yaml"))
    assert done.code == 0, done.errors + done.output
    return done


@pytest.fixture(scope="session")
def second(passed: Done, once: Callable[[str, Callable[[Chaos], Done]], Done]) -> Done:
    """``chaos run kill-rank.yaml`` with a baseline in the cache."""

    def make(chaos: Chaos) -> Done:
        copy_baseline(passed.run, chaos.reports)
        return chaos.run("kill-rank.yaml")

    return once("second", make)


@pytest.fixture
def copy_of_run(passed: Done, tmp_path: Path) -> Run:
    """A copy of the run that passed, to be tampered with."""
    return Run(shutil.copytree(passed.run.path, tmp_path / "copied" / passed.run.path.name))


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Chaos]:
    """The command line with an empty reports directory."""
    place = tmp_path / "chaos"
    place.mkdir()
    chaos = Chaos(place / "reports", place)
    yield chaos
    chaos.close()


@pytest.fixture
def chaos(fresh: Chaos, passed: Done) -> Chaos:
    """The command line with a reports directory that holds nothing but the baseline of kill-rank."""
    copy_baseline(passed.run, fresh.reports)
    return fresh


def copy_baseline(run: Run, reports: Path) -> None:
    """Copy the cached baseline that the run was compared with."""
    source = run.path.parent
    shutil.copytree(source / ".baselines", reports / ".baselines")
    for baseline in source.glob("baseline-*"):
        shutil.copytree(baseline, reports / baseline.name)
