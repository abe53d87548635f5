"""What a job reads is told by content, or by size and time, without reading more than it must."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.jobs.inputs import changes, module_inputs, named_inputs, sources_digest, words_of


def test_every_word_that_names_a_file_has_an_entry_and_others_have_none(tmp_path: Path) -> None:
    data = tmp_path / "train.json"
    data.write_text("[]")
    words = ["train", f"--data={data}", str(tmp_path / "none"), "", " ", "\0", "x" * 5000, "train.json"]
    assert list(named_inputs(words)) == [f"seen {data}"]
    assert list(named_inputs(["train.json"], tmp_path)) == [f"seen {data}"]


def test_a_file_in_a_named_directory_that_changes_is_seen(tmp_path: Path) -> None:
    inner = tmp_path / "set" / "part"
    inner.mkdir(parents=True)
    (inner / "0.bin").write_bytes(b"one")
    before = named_inputs([str(tmp_path / "set")])
    assert named_inputs([str(tmp_path / "set")]) == before
    os.utime(inner / "0.bin", ns=(1, 1))
    assert changes(before, named_inputs([str(tmp_path / "set")])) == (f"seen {tmp_path / 'set'}",)


def test_an_indexed_data_set_is_seen_by_what_its_files_have_in_common(tmp_path: Path) -> None:
    for ending in ("bin", "idx"):
        (tmp_path / f"wiki.{ending}").write_bytes(b"one")
    before = named_inputs([str(tmp_path / "wiki")])
    os.utime(tmp_path / "wiki.bin", ns=(1, 1))
    assert changes(before, named_inputs(["./wiki"], tmp_path)) == (f"seen {tmp_path / 'wiki.bin'}",)
    assert f"seen {tmp_path / 'wiki.idx'}" in before


def test_modules_of_a_search_path_are_seen_but_not_what_python_makes_of_them(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("A = 1")
    before = module_inputs(f"{tmp_path}:relative::/nowhere")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "own.py").write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert len(before) == 1 and module_inputs(str(tmp_path)) == before
    (tmp_path / "own.py").write_text("A = 12")
    assert module_inputs(str(tmp_path)) != before


@pytest.mark.parametrize("where", ["top.py", "below/inner.py", "tool.sh"])
def test_sources_count_by_content_wherever_they_lie(tmp_path: Path, where: str) -> None:
    (tmp_path / "below").mkdir()
    file = tmp_path / where
    file.write_text("a")
    before = sources_digest(tmp_path, [tmp_path / "tool.sh"])
    file.touch()
    assert sources_digest(tmp_path, [tmp_path / "tool.sh"]) == before
    file.write_text("b")
    assert sources_digest(tmp_path, [tmp_path / "tool.sh"]) != before


def test_another_environment_inside_a_checkout_is_none_of_its_sources(tmp_path: Path) -> None:
    before = sources_digest(tmp_path)
    (tmp_path / "venv" / "lib").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "venv" / "lib" / "x.py").write_text("")
    assert sources_digest(tmp_path) == before


def test_words_are_found_at_every_depth() -> None:
    assert list(words_of({"a": ["b", {"c": "d"}], "e": 1, "f": ("g", None)})) == ["b", "d", "g"]
