"""The record of abnormal norms is read as documented, and anything else is an error that says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.observe.checkpoints.norm_record import NormRecordError, read_norm_record


def test_norms_are_read_by_step(tmp_path: Path) -> None:
    path = tmp_path / "abnormal_global_norm.json"
    path.write_text('{"2": [45.70246505737305, 45.70649719238281], "15": [1e999], "7": [3]}')
    assert read_norm_record(path) == {2: [45.70246505737305, 45.70649719238281], 15: [float("inf")], 7: [3.0]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1]", "not a mapping"),
        ('{"two": [1]}', "'two' is no step"),
        ('{"02": [1]}', "'02' is no step"),
        ('{"2": 1}', "step 2 has something else than a list of norms"),
        ('{"2": [true]}', "step 2 has something else"),
        ('{"2": [NaN]}', "step 2 has something else"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_anything_else_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "abnormal_global_norm.json"
    path.write_text(text)
    with pytest.raises(NormRecordError, match=message):
        read_norm_record(path)
