"""Runs a scenario with a defect in the processes of its job, and compares it with the good run of the scenario."""

from __future__ import annotations

import shutil
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import yaml

from chaos.checks.judge import judge
from chaos.scenario.models.job import Job
from chaos.selftest.acts import acts_of
from chaos.selftest.base import BaseUnusable, scenario_of
from chaos.selftest.defect import Defect, Row, outcome_of
from chaos.selftest.job import ARGUMENT, defective
from chaos.selftest.launcher import Launcher, RunFailed
from chaos.selftest.workdirs import LIVE

TakeBase = Callable[[str, Path], Path]
"""Copies the good run of a scenario to a path and returns the path. Raises BaseUnusable."""


class LiveRuns:
    """Runs with defects. Safe to share between threads.

    The fault-free run of a defective run is that of the good run: it has no defect, and shows that the scenario is good
    without one. ``clock`` is in seconds and only measures. With ``keep`` the defective runs stay.
    """

    def __init__(
        self, take_base: TakeBase, launcher: Launcher, *, cores: int, clock: Callable[[], float], keep: bool = False
    ) -> None:
        self._take_base = take_base
        self._launcher = launcher
        self._cores = cores
        self._clock = clock
        self._keep = keep
        self._bases: dict[str, Path | BaseUnusable] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def run(self, defect: Defect, place: Path) -> Row:
        """Run the base of ``defect`` with it, below ``place``. Its time is that of the defective run alone."""
        try:
            base = self._base(defect.base, place)
        except BaseUnusable as error:
            return Row(defect, "not run", 0.0, str(error))
        scenario = write_defective(defect, place / "defective")
        began = self._clock()
        try:
            ran = self._launcher.run(
                scenario, place / LIVE, cores=self._cores, options=["--baseline", str(base / "baseline")]
            )
        except RunFailed as error:
            return Row(defect, "not run", self._clock() - began, str(error))
        judgement = judge(ran.directory)
        outcome, line = outcome_of(defect, judgement.findings, judgement.verdict)
        acts = acts_of(ran.directory)
        if not acts:
            outcome, line = "did not act", f"the defect has changed nothing; all the same {judgement.verdict}: {line}"
        if not self._keep:
            shutil.rmtree(ran.directory)
        return Row(defect, outcome, self._clock() - began, line, acts)

    def _base(self, name: str, place: Path) -> Path:
        with self._locks[name]:
            if name not in self._bases:
                try:
                    self._bases[name] = self._take_base(name, place / "good" / name)
                except BaseUnusable as error:  # for the other defects of this base, too
                    self._bases[name] = error
            base = self._bases[name]
        if isinstance(base, BaseUnusable):
            raise base
        return base


def write_defective(defect: Defect, directory: Path) -> Path:
    """Write the base scenario of ``defect`` with the kind that puts it in; a user can run that file, too.

    The script of the base, if it has one, is copied beside it: a scenario names only files below its own directory.
    """
    base = scenario_of(defect.base)
    scenario = yaml.safe_load(base.read_text("utf-8"))
    scenario["name"] = defect.name
    job = scenario["job"]
    job["kind"] = defective(job.get("kind", Job.model_fields["kind"].default))
    job["arguments"] = [*job.get("arguments", ()), f"{ARGUMENT}{defect.inside}"]
    directory.mkdir(parents=True, exist_ok=True)
    if (script := job.get("script")) is not None:
        shutil.copyfile(base.parent / script, directory / script)
    path = directory / f"{defect.name}.yaml"
    path.write_text(yaml.safe_dump(scenario, sort_keys=False), "utf-8")
    return path
