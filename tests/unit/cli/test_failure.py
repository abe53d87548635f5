"""A disk that takes nothing more is told as that, and not as a defect of the harness."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.base.clock import BootUnknown, boot_id
from chaos.cli.commands.run import _save
from chaos.cli.failure import explain
from chaos.history.ledger import LedgerError
from chaos.history.writer import HistoryWriteError
from chaos.machine.job.protocol import PlatformError
from chaos.report.summary import CellOutcome, Summary


@pytest.mark.parametrize("kind", [LedgerError, HistoryWriteError])
@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "The disk is full"), (errno.EROFS, "is read-only")])
def test_a_full_or_read_only_disk_is_named_with_what_to_do(kind: type[Exception], code: int, said: str) -> None:
    error = kind("undo.jsonl: cannot be written")
    error.__cause__ = OSError(code, "no")
    text = explain(error, ["run"], debug=False)
    assert said in text and "`chaos heal` makes sure of that" in text and "Please report" not in text


def test_every_other_error_is_a_defect_to_report() -> None:
    error = LedgerError("x")
    error.__cause__ = PermissionError(errno.EPERM, "no")
    assert "Please report" in explain(error, ["run"], debug=False)


def test_a_summary_that_cannot_be_written_is_told_and_costs_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = tmp_path / "reports"
    reports.write_text("in the way")
    summary = Summary("now", (CellOutcome("a", "", "a-1", "pass", 1.0),))
    assert not _save(summary, reports)
    assert "summary.json cannot be written: File exists" in capsys.readouterr().err
    reports.unlink()
    assert _save(summary, reports) and (reports / "summary.json").exists()


def test_a_kernel_that_does_not_tell_its_boot_is_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Path, encoding: str) -> str:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(Path, "read_text", missing)
    with pytest.raises(BootUnknown) as unknown:
        boot_id()
    text = explain(unknown.value, ["run"], debug=False)
    assert text.startswith("chaos: /proc/sys/kernel/random/boot_id cannot be read (No such file") and "\n" not in text


def test_what_befell_a_node_is_told_with_its_words_and_is_no_defect_to_report() -> None:
    text = explain(PlatformError("host a (u@a): its disk is full"), ["run"], debug=False)
    assert text.startswith("chaos: aborted, so there is no verdict: host a (u@a): its disk is full\n")
    assert "Please report" not in text


WARNS = """
import logging, sys, warnings
import click
from chaos.cli import main

@click.command("plan")
def command() -> None:
    logging.getLogger("urllib3.connectionpool").warning("Retrying (Retry(total=2))")
    warnings.warn("unverified HTTPS request", UserWarning)

main.cli.get_command = lambda context, name: command
sys.exit(main.entry(["plan", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(("debug", "lines"), [("0", 0), ("1", 2)])
def test_what_a_library_prints_of_a_retry_is_seen_only_by_who_asks(debug: str, lines: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WARNS], capture_output=True, text=True, env={**os.environ, "CHAOS_DEBUG": debug}
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (0, lines), done.stderr
