"""report.html of a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from chaos.checks.judge import Judgement
from chaos.report.files import replace_file
from chaos.report.page.data import page_of
from chaos.report.page.model import FILE
from chaos.report.page.render import render
from chaos.report.result import Result


def write_page(run_dir: Path, judgement: Judgement, result: Result) -> Path:
    """Write the page of a run that was judged, and return its path. Raises OSError when it cannot be written."""
    path = run_dir / FILE
    replace_file(path, render(asdict(page_of(run_dir, judgement, result))).encode(errors="replace"))
    return path
