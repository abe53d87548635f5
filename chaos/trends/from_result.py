"""The row of a run from its files: result.json, with run.json and the record of the harness beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path, PurePath
from typing import Any

from chaos.base.plain_files import open_plain, read_plain
from chaos.base.strict_json import parse
from chaos.evidence.finding import Verdict
from chaos.history.jsonl import decode
from chaos.report.known_finding import explains, failed_beyond, holds, signatures
from chaos.report.result import SCHEMA_VERSION
from chaos.report.result_file import FILE, newer_than_this
from chaos.store.directory import RUN_FILE
from chaos.trends.row import BEYOND, MOST_NUMBER, PhaseTime, RunRow, moment_of, on_one_line

VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "unknown")

MOST_TEXT = 300
"""Characters of a name that are kept."""

MOST_HEADLINE = 2000

MOST_PHASES = 100

_HEAD = 1 << 20
"""Bytes of the harness's record in which the first start of the job is looked for."""

_BY_SIZE_AND_TIME = "seen"
"""Prefix of inputs with a fingerprint of size and time, not of content: it differs on each machine."""


class NoRow(Exception):
    """The run has no result that can be kept. The text names the file and says why."""


def row_of(run_dir: Path, *, soak: bool = False) -> RunRow:
    """Return the row of a finished run. Raises NoRow without a result.json that this version reads."""
    path = run_dir / FILE
    result = _object(_read(path))
    if type(version := result.get("schema_version")) is not int:
        raise NoRow(f"{path}: is not a result: run `chaos analyze {run_dir}`")
    if version > SCHEMA_VERSION:
        raise NoRow(newer_than_this(path, version))
    verdict = result.get("verdict")
    if verdict not in VERDICTS:
        raise NoRow(f"{path}: has no verdict: run `chaos analyze {run_dir}`")
    return _row(run_dir, result, _facts(run_dir), verdict, soak=soak)


def _row(run_dir: Path, result: Mapping[str, Any], facts: Mapping[str, Any], verdict: Verdict, *, soak: bool) -> RunRow:
    made, recovery, plan = (_object(result.get(key)) for key in ("made", "recovery", "plan"))
    versions, machine, ci = _object(result.get("versions")), _object(made.get("machine")), _object(facts.get("ci"))
    headline = _object(result.get("headline"))
    started, seconds = _started(made.get("started")), _seconds(made.get("seconds"))
    return RunRow(
        run=_text(facts.get("run")) or _text(run_dir.name),
        scenario=_text(result.get("scenario")),
        cell=_text(result.get("cell")),
        verdict=verdict,
        headline=_text(headline.get("text") or result.get("reason"), MOST_HEADLINE),
        headline_id=_text(headline.get("id")),
        started=started,
        ended=_later(started, seconds),
        seconds=seconds,
        working=_working(run_dir, seconds),
        mechanism=_text(recovery.get("mechanism")),
        total=_seconds(recovery.get("total")),
        rollback=_seconds(recovery.get("rollback")),
        ranks=_whole(plan.get("ranks")),
        code=_text(made.get("code")),
        chaos=_text(versions.get("chaos")),
        job=_digest(_object(made.get("inputs"))),
        mindspore=_text(versions.get("mindspore")),
        sdk=_sdk(facts, versions),
        platform=_text(facts.get("platform")),
        revision=_text(ci.get("revision")),
        ci=_text(ci.get("job")),
        host=_text(_object(facts.get("host")).get("name")),
        processors=_whole(machine.get("processors")),
        load=_seconds(machine.get("load")),
        file=_text(facts.get("source") or plan.get("source"), 4096),
        line=_line(result, plan),
        finding=_finding(result, plan),
        soak=soak,
        phases=tuple(_phases(recovery, _object(plan.get("budget")))),
    )


def _read(path: Path) -> Any:
    try:
        return parse(read_plain(path))
    except OSError as error:
        raise NoRow(str(error)) from error
    except ValueError as error:
        raise NoRow(f"{path}: is not JSON ({error}): run `chaos analyze {path.parent}`") from error


def _facts(run_dir: Path) -> dict[str, Any]:
    """Read run.json; empty where it is unreadable: the row then lacks the values of that file."""
    try:
        return dict(decode(read_plain(run_dir / RUN_FILE)))
    except (OSError, ValueError):
        return {}


def _phases(recovery: Mapping[str, Any], budget: Mapping[str, Any]) -> Iterator[PhaseTime]:
    budgets = _object(budget.get("phases"))
    for name, seconds in list(_object(recovery.get("phases")).items())[:MOST_PHASES]:
        yield PhaseTime(_text(name), _seconds(seconds), _seconds(budgets.get(name)))


def _sdk(facts: Mapping[str, Any], versions: Mapping[str, Any]) -> str:
    """Return ``standin``, or ``vendor`` with the version of the vendor's package where it is known."""
    name, version = _text(facts.get("sdk")), _text(versions.get("mindio_ttp"))
    return f"{name} {version}" if name == "vendor" and version else name


def _digest(inputs: Mapping[str, Any]) -> str:
    """Return the digest of the job's sources; empty where none are recorded."""
    sources = {name: value for name, value in inputs.items() if not str(name).startswith(_BY_SIZE_AND_TIME)}
    if not sources:
        return ""
    return hashlib.blake2b(json.dumps(sources, sort_keys=True).encode(), digest_size=8).hexdigest()


def _finding(result: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    simulated, checks = _list(result.get("simulated")), _list(result.get("checks"))
    if result.get("verdict") == "fail" and signatures(checks):
        return "sometimes"
    if not holds(plan, simulated):
        return ""
    if result.get("verdict") == "fail" and not explains(plan, simulated, failed_beyond(checks)):
        return BEYOND
    return "sometimes" if plan.get("finding_always") is False else "always"


def _line(result: Mapping[str, Any], plan: Mapping[str, Any]) -> int | None:
    """Return the line of the scenario at which the deciding statement points, else that of the first fault."""
    checks = [check for check in _list(result.get("checks")) if type(check.get("order")) is int]
    for check in sorted(checks, key=lambda check: int(check["order"])):
        where = check.get("where")
        for place in where if isinstance(where, list) else ():
            name, _, number = str(place).rpartition(":")
            if PurePath(name).suffix in (".yaml", ".yml") and number.isascii() and number.isdigit() and len(number) < 8:
                return int(number)
    return next((line for fault in _list(plan.get("faults")) if (line := _whole(fault.get("line")))), None)


def _working(run_dir: Path, seconds: float | None) -> float | None:
    """Return the seconds of a run from the first start of its own job on; None where that was not recorded."""
    begun: float | None = None
    try:
        with open_plain(run_dir / "history" / "harness.jsonl") as file:
            lines = file.read(_HEAD).splitlines()
        for line in lines:
            event = decode(line)
            if event.get("event") == "run.start":
                begun = float(event["mono"])
            elif event.get("event") == "attempt.start" and begun is not None and seconds is not None:
                return max(0.0, seconds - (float(event["mono"]) - begun) / 1e9)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _started(value: Any) -> str:
    moment = moment_of(value) if isinstance(value, str) else None
    return "" if moment is None else moment.isoformat()


def _later(started: str, seconds: float | None) -> str:
    try:
        begun = moment_of(started)
        return "" if begun is None else (begun + timedelta(seconds=seconds or 0)).isoformat(timespec="seconds")
    except OverflowError:
        return ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _text(value: Any, most: int = MOST_TEXT) -> str:
    return on_one_line(value[:most]) if isinstance(value, str) else ""


def _seconds(value: Any) -> float | None:
    """Return a number of seconds that a run can take."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= MOST_NUMBER else None


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None
