"""``python -m chaos.own.child RUN MODULE FUNCTION ANSWER``: call a check of the user's own about a run.

The user has allowed the code by its name. This process reads the plan and the history of the run, calls the function,
and writes the statements and the error to the file ANSWER.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from chaos.evidence.finding import Finding
from chaos.history.reader import read_history
from chaos.plan.io import loads

_VERDICTS = ("pass", "fail", "unknown")
_LONGEST = 4000


def _main(run: str, module: str, function: str, answer: str) -> int:
    statements: list[Finding] = []
    error = None
    try:
        plan, history = loads((Path(run) / "plan.json").read_bytes()), read_history(Path(run) / "history")
        for statement in _stated(_function(Path(module), function)(plan, history)):
            statements.append(_checked(statement))
    except BaseException as failure:  # SystemExit, too: a check that leaves has not answered
        error = _last_line(failure, Path(module))
    data = [
        {
            "verdict": statement.verdict,
            "expected": statement.expected[:_LONGEST],
            "seen": statement.seen[:_LONGEST],
            "where": [place[:_LONGEST] for place in statement.where],
        }
        for statement in statements
    ]
    with Path(answer).open("x", encoding="utf-8") as file:
        json.dump({"statements": data, "error": error}, file)
    return 0


def _function(path: Path, name: str) -> Callable[..., Any]:
    """Import the file and return the function. Modules beside the file can be imported by it, after all others."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[:1] = []  # the directory of the run, which holds files of the job
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise AttributeError(f"{path.name} has no function {name}")
    return function  # type: ignore[no-any-return]


def _stated(result: object) -> Iterable[object]:
    if result is None:
        return ()
    if isinstance(result, Finding):
        return (result,)
    if isinstance(result, Iterable) and not isinstance(result, (str, bytes, dict)):
        return result
    raise TypeError(f"it returned {type(result).__name__}, not statements of chaos.api.checks")


def _checked(statement: object) -> Finding:
    if not isinstance(statement, Finding):
        raise TypeError(f"a statement is {type(statement).__name__}: make it by passed(), failed() or unknown()")
    texts = (statement.expected, statement.seen, *statement.where)
    if statement.verdict not in _VERDICTS or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"a statement is not of texts: {texts!r}"[:_LONGEST])
    return statement


def _last_line(failure: BaseException, path: Path) -> str:
    """Return the last line of the traceback, with the place in the user's file."""
    text = traceback.format_exception_only(type(failure), failure)[-1].strip()
    frames = traceback.extract_tb(failure.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
    return f"{text} ({path.name}:{lines[-1]})"[:_LONGEST] if lines else text[:_LONGEST]


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
