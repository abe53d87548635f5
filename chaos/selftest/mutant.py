"""Judges the copy of a good run with a defect in its files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from chaos.checks.judge import RunUnreadable, judge
from chaos.selftest.defect import Defect, NothingToMutate, Outcome, Row, outcome_of


def judge_mutant(defect: Defect, base: Path, place: Path, clock: Callable[[], float], *, keep: bool = False) -> Row:
    """Copy ``base`` into ``place``, mutate the copy, and say whether the checks catch it.

    ``clock`` is in seconds. The copy is removed afterwards, unless it is to be kept.
    """
    began = clock()
    directory = place / defect.name
    copy = shutil.copytree(base, directory / base.name, symlinks=True)
    try:
        outcome, line = _judge(defect, copy)
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
    return Row(defect, outcome, clock() - began, line)


def _judge(defect: Defect, copy: Path) -> tuple[Outcome, str]:
    assert defect.mutate is not None, defect.name
    try:
        defect.mutate(copy)
    except NothingToMutate as error:
        return "not run", f"the run could not be spoilt: {error}"
    try:
        judgement = judge(copy)
    except RunUnreadable as error:
        return "wrong reason", f"the run cannot be judged: {error}"
    return outcome_of(defect, judgement.findings, judgement.verdict)
