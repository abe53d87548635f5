"""A soak puts back what was killed along with an earlier one, before it goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.soak.runs import Soak
from chaos.history.ledger import UndoStep
from chaos.store.directory import create_run, make_private_directory


def test_what_an_earlier_soak_has_left_is_put_back_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = create_run(tmp_path / "reports", "kill-rank")
    private = make_private_directory(run.ledger, run.token)
    run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}))
    run.lock.release()
    assert not Soak([], tmp_path / "reports", 1, 1, False, {}, "auto").run()
    assert not private.exists() and run.ledger.open_steps() == []
    assert f"left by an earlier soak: {run.run}: private-directory: removed {private}" in capsys.readouterr().err
