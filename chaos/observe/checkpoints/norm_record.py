"""Reader of ``abnormal_global_norm.json``: the steps with a global norm at or above the threshold, and the norms.

MindFormers writes it on rank 0, into the job's output directory: ``{"15": [0.77, 0.78]}``, the second value when the
step was trained again.
"""

from __future__ import annotations

import math
from pathlib import Path

from chaos.base.plain_files import read_plain
from chaos.base.strict_json import parse
from chaos.base.walking import Unseen, raise_unseen, walk

NAME = "abnormal_global_norm.json"


class NormRecordError(ValueError):
    """The file is not such a record. The text names the mistake in it."""


def find_norm_records(root: Path, unseen: Unseen = raise_unseen) -> list[Path]:
    """Return the files of that name under ``root``.

    ``unseen`` receives each path that cannot be read; without ``unseen`` an OSError is raised instead.
    """
    return sorted(Path(directory, NAME) for directory, _, files in walk(root, unseen) if NAME in files)


def read_norm_record(path: Path) -> dict[int, list[float]]:
    """Return the norms by step. Raises NormRecordError for any other content, OSError if the file cannot be read."""
    try:
        data = parse(read_plain(path), finite=False)
    except ValueError as error:
        raise NormRecordError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise NormRecordError("not a mapping of steps to norms")
    record: dict[int, list[float]] = {}
    for step, norms in data.items():
        if not (step.isascii() and step.isdigit()) or len(step) > 18 or step != str(int(step)):
            raise NormRecordError(f"{step[:40]!r} is no step")
        if not isinstance(norms, list) or not all(_is_norm(norm) for norm in norms):
            raise NormRecordError(f"step {step} has something else than a list of norms")
        record[int(step)] = [float(norm) for norm in norms]
    return record


def _is_norm(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)
