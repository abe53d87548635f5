"""Run scenarios from Python: the stable interface, which docs/guides/python.md describes.

Example::

    from chaos.api import run

    outcome = run("plain-kill-rank", ranks=4)
    assert outcome.verdict == "pass", outcome
    assert outcome.recovery.total < 60

:mod:`chaos.api.checks` has what checks beside a scenario need. Names that are listed here and there keep their meaning;
all other modules of ``chaos`` may change with any release.
"""

from __future__ import annotations

from chaos.api.errors import (
    BadScenario,
    CannotRun,
    ChaosError,
    HarnessFailed,
    Interrupted,
    NotMeasured,
    UnknownCell,
    UnknownParameter,
    UnknownScenario,
)
from chaos.api.losses import Losses
from chaos.api.results import Recovery, Run, Statement, Verdict
from chaos.api.run import Chaos, run

__all__ = [
    "BadScenario",
    "CannotRun",
    "Chaos",
    "ChaosError",
    "HarnessFailed",
    "Interrupted",
    "Losses",
    "NotMeasured",
    "Recovery",
    "Run",
    "Statement",
    "UnknownCell",
    "UnknownParameter",
    "UnknownScenario",
    "Verdict",
    "run",
]
