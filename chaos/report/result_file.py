"""result.json of a run: written in one piece, and read only where it has the documented format."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from chaos.base.plain_files import read_plain
from chaos.base.strict_json import parse
from chaos.plan.io import loads
from chaos.report.files import replace_file
from chaos.report.result import SCHEMA_VERSION, Result, from_json

FILE = "result.json"


class ResultUnreadable(Exception):
    """There is no result.json, or it does not have this format. The text says which file, and what to do."""


def write_result(result: Result, run_dir: Path) -> Path:
    """Write result.json in one piece: a reader sees the old one or the new one. Raises OSError."""
    path = run_dir / FILE
    text = json.dumps(result.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Half a character pair, which evidence may hold, becomes its JSON escape.
    replace_file(path, text.encode(errors="backslashreplace"))
    return path


def has_result(run_dir: Path) -> bool:
    """Return whether a directory holds a result.json; also where it may not be looked into, since reading says why."""
    if run_dir.is_symlink():
        return False
    try:
        (run_dir / FILE).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def read_result(run_dir: Path) -> Result:
    """Read result.json of a run. Raises ResultUnreadable."""
    path = run_dir / FILE
    try:
        data = parse(read_plain(path))
        version = data.get("schema_version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise ResultUnreadable(newer_than_this(path, version))
        _check_types(data)
        return from_json(data)
    except OSError as error:
        raise ResultUnreadable(f"{path}: {error.strerror}: run `chaos analyze` on the run") from error
    except ValidationError as error:
        text = f"{path}: not a result of this version ({error.error_count()} values): run `chaos analyze` on the run"
        raise ResultUnreadable(text) from error
    except (KeyError, TypeError, ValueError) as error:
        text = f"{path}: not a result of this version ({error!r}): run `chaos analyze` on the run"
        raise ResultUnreadable(text) from error


def newer_than_this(path: Path, version: int) -> str:
    """Return the sentence about a result of a newer version: to judge it again would replace it by an older one."""
    return (
        f"{path}: has schema_version {version}, and this version of chaos reads {SCHEMA_VERSION}: "
        "it is left out; read it with a newer chaos"
    )


def _check_types(data: Any) -> None:
    """Refuse values of other types than the format's. Raises ValueError (pydantic's ValidationError)."""
    # Half a character pair, which evidence may hold, is not JSON for the validator; its type is the type of any text.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False).encode(errors="replace")
    _adapter().validate_json(text, strict=True)
    loads(json.dumps(data["plan"]))
    if not all(isinstance(stand_in.get(key), str) for stand_in in data["simulated"] for key in ("part", "layer")):
        raise ValueError("a stand-in has no name or no layer")


@cache
def _adapter() -> TypeAdapter[Result]:
    return TypeAdapter(Result)
