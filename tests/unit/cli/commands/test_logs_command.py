"""``chaos logs`` shows what readers know of a file, and what they do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.unit.cli.kit import Ended
from tests.unit.conftest import MakeDeep

Call = Callable[..., Ended]
DATA = Path(__file__).parents[2] / "observe" / "data"


def test_events_are_shown_with_their_place_and_the_reader_that_the_content_chose(chaos: Call, tmp_path: Path) -> None:
    path = tmp_path / "named-like-nothing"
    path.write_bytes((DATA / "samples" / "tre-spike.log").read_bytes())
    ended = chaos("logs", str(path), "--kind", "tre")
    assert ended.code == 0
    *events, ending = ended.out.splitlines()
    assert [line.split()[0] for line in events] == ["47", "48", "50", "51", "52"]
    assert "norm=52.48709487915039 threshold=5.0" in events[0]
    assert "reader mindformers; 89 lines, 44 events" in ending
    assert ending.endswith("41 unknown lines")


def test_unknown_lines_are_counted_and_printed(chaos: Call, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("epoch: 1 step: 1, loss is 0.5\nwhat is this\x1b[2J?\n\nepoch: 1 st")
    ended = chaos("logs", str(path), "--unknown")
    assert ended.out.splitlines() == [
        "      2  what is this\N{REPLACEMENT CHARACTER}[2J?",
        f"{path}: reader mindspore; 3 lines, 1 events (train.loss 1), 1 unknown lines, the last line breaks off",
    ]


def test_json_has_an_object_for_each_event_and_one_for_each_file(chaos: Call, tmp_path: Path) -> None:
    (tmp_path / "b.log").write_text("epoch: 1 step: 1, loss is nan\nx\n")
    (tmp_path / "a.log").write_text("nothing\n")
    lines = [json.loads(line) for line in chaos("logs", str(tmp_path), "--json").out.splitlines()]
    assert [line["file"] for line in lines] == [str(tmp_path / name) for name in ("a.log", "b.log", "b.log")]
    assert (lines[0]["reader"], lines[0]["unknown_lines"]) == (None, 1)
    assert lines[1]["fields"] == {"epoch": 1, "step_in_epoch": 1, "loss_text": "nan", "loss": "nan"}
    assert (lines[2]["events"], lines[2]["unknown_lines"], lines[2]["kinds"]) == (1, 1, {"train.loss": 1})
    (unknown, _) = [
        json.loads(line) for line in chaos("logs", str(tmp_path / "a.log"), "--json", "--unknown").out.splitlines()
    ]
    assert unknown == {"file": str(tmp_path / "a.log"), "line": 1, "unknown": "nothing"}


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_read(chaos: Call, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    (tmp_path / "link.log").symlink_to(tmp_path / "a.log")
    ended = chaos("logs", str(tmp_path))
    assert ended.code == 64
    assert "link.log" in ended.err and "link" in ended.err
    assert "a.log: reader none; 1 lines, 0 events, 1 unknown lines" in ended.out


def test_directories_too_deep_to_be_searched_are_told(chaos: Call, tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "job")
    (tmp_path / "job" / "a.log").write_text("epoch: 1 step: 1, loss is 0.5\n")
    ended = chaos("logs", str(tmp_path / "job"))
    assert ended.code == 64 and "1 events (train.loss 1)" in ended.out
    assert f"chaos: {tmp_path / 'job'}: has more than 256 levels of directories below" in ended.err
