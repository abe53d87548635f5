"""What a rank records of a fault itself is read while the rank still writes."""

from __future__ import annotations

from pathlib import Path

from chaos.faults.own_record import own_event

LINE = b'{"event":"error.raised","fault":"hcce","step":3}\n'


def test_a_line_whose_beginning_does_not_show_yet_is_found_later(tmp_path: Path) -> None:
    record = tmp_path / "train-rank_1-7.jsonl"
    record.write_bytes(bytes(8) + LINE[8:])
    assert own_event(record, "error.raised", "hcce") is None
    record.write_bytes(LINE)
    assert own_event(record, "error.raised", "hcce") == {"event": "error.raised", "fault": "hcce", "step": 3}
