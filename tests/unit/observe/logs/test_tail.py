"""A log is followed line by line, from its last steps on, and from its beginning when it is begun again."""

from __future__ import annotations

from pathlib import Path

from chaos.observe.logs.reader import built_in_readers
from chaos.observe.logs.tail import LogTail


def tail_of(path: Path, back: int = 1 << 20) -> LogTail:
    return LogTail(path.open("rb"), built_in_readers(), name="worker_0.log", back=back)


def line(step: int) -> str:
    return f"epoch: 1 step: {step}, loss is 0.5\n"


def steps(tail: LogTail) -> list[int]:
    return [event.fields["step_in_epoch"] for event in tail.new_events()]


def test_what_is_added_is_told_once_and_half_a_line_not_yet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(line(1))
    tail = tail_of(path)
    assert steps(tail) == [1]
    with path.open("a") as log:
        log.write(line(2) + line(3)[:20])
        log.flush()
        assert steps(tail) == [2]
        log.write(line(3)[20:])
        log.flush()
        assert (steps(tail), steps(tail)) == ([3], [])


def test_only_the_end_of_a_long_log_is_read_and_no_half_line_of_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(line(step) for step in range(1, 1001)))
    found = steps(tail_of(path, back=100))
    assert found == [998, 999, 1000]


def test_a_log_that_is_begun_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(line(1) + line(2))
    tail = tail_of(path)
    assert steps(tail) == [1, 2]
    path.write_text(line(7))  # the same file, emptied, as msrun does for a rank that it starts again
    assert steps(tail) == [7]


def test_a_log_without_a_name_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(line(1))
    tail = tail_of(path)
    with path.open("a") as log:
        path.unlink()
        log.write(line(2))
    assert steps(tail) == [1, 2]
