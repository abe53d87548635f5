"""A line counts by what its program has printed: what others put before it is taken off, and a quotation is no fact."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.observe.logs.launcher_prefix import strip_launcher
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.losses.loss_columns import LossScanner
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log
from chaos.observe.logs.tail import LogTail

READERS = built_in_readers(timezone.utc)
LOSS = "epoch: 1 step: 18, loss is 2.25"
CANN = "EI0006: [PID: 4711] 2025-06-01-08:00:02.444.436 Getting socket times out. Reason: the remote rank did not send"
STEP = "{ Epoch:[  1/  2], step:[    3/    8], loss: 1.438, per_step_time: 111ms, lr: 0.01 }"
RECORD = "2026-11-21 01:28:53,952 - mindformers/job/log[mindformers/a.py:7] - INFO - Get checkpoint: /a-1_6.ckpt"

PREFIXES = {
    "mpirun": ("[1,3]<stdout>:", "1,3"),
    "prterun": ("[prterun-host-1234@1,3]<stderr>: ", "prterun-host-1234@1,3"),
    "torchrun": ("[rank1]: ", "rank1"),
    "torchrun tee": ("[default0]:", "default0"),
    "srun": (" 3: ", "3"),
    "kubectl time": ("2025-06-01T08:00:01.123456789Z ", None),
    "container runtime": ("2025-06-01T08:00:01.123456789+08:00 stdout F ", None),
    "kubectl prefix": ("[pod/tiny-worker-0/ascend] ", None),
    "journal": ("Jun 01 08:00:01 node-1 python3[4711]: ", None),
    "address": ("10.0.0.7: ", None),
    "colour": ("\x1b[32m", None),
    "all": ("2025-06-01T08:00:01Z \x1b[1;31m[1,3]<stdout>:[rank1]: ", "rank1"),
}


def read(folder: Path, *lines: str) -> tuple[list[LogEvent], LogScan]:
    path, scan = folder / "job.log", LogScan()
    path.write_text("".join(f"{line}\n" for line in lines))
    return list(read_log(path, READERS, scan=scan)), scan


@pytest.mark.parametrize(("prefix", "tag"), PREFIXES.values(), ids=PREFIXES)
@pytest.mark.parametrize("line", [LOSS, CANN, STEP])
def test_a_line_behind_a_prefix_is_what_it_is_without(tmp_path: Path, prefix: str, tag: str | None, line: str) -> None:
    ((alone,), _) = read(tmp_path, line)
    ((event,), scan) = read(tmp_path, f"{prefix}{line}" + ("\x1b[0m" if "\x1b" in prefix else ""))
    assert (event.kind, event.rank, event.step, scan.unknown) == (alone.kind, alone.rank, alone.step, 0)
    assert event.fields == alone.fields | ({} if tag is None else {"tag_text": tag})


def test_the_time_of_a_cluster_is_taken_where_the_line_has_none(tmp_path: Path) -> None:
    ((loss, code), _) = read(tmp_path, f"2025-06-01T08:00:01.5Z {LOSS}", f"2025-06-01T08:00:09Z {CANN}")
    assert loss.wall_ns == int(datetime(2025, 6, 1, 8, 0, 1, tzinfo=timezone.utc).timestamp()) * 10**9 + 5 * 10**8
    assert code.wall_ns == int(datetime(2025, 6, 1, 8, 0, 2, tzinfo=timezone.utc).timestamp()) * 10**9 + 444_000_000


def test_a_line_that_docker_has_put_into_json_is_read(tmp_path: Path) -> None:
    ((event,), _) = read(tmp_path, f'{{"log":"{LOSS}\\n","stream":"stdout","time":"2025-06-01T08:00:01Z"}}')
    assert (event.kind, event.wall_ns) == ("train.loss", 1_748_764_801_000_000_000)


@pytest.mark.parametrize(
    "line", ['{"log":"epoch: 1 step: 18, loss is 2', '{"log":"a","log":3}', '{"log":"a"} {}', '{"log":"']
)
def test_what_is_no_such_json_stays_as_it_is(line: str) -> None:
    assert strip_launcher(line).text == line


@pytest.mark.parametrize(
    "line",
    [
        f"help: see {LOSS}",
        f"[rank1]: help: {LOSS}",
        f"[1,3]<stdout>: '{LOSS}'",
        f"2025-06-01T08:00:01Z note: {CANN}",
        f'help: "{RECORD}"',
        f"[rank1]: they print '{RECORD}'",
    ],
)
def test_a_sentence_that_another_line_quotes_is_no_event(tmp_path: Path, line: str) -> None:
    assert read(tmp_path, line)[0] == []


def test_a_record_behind_half_a_line_is_still_read(tmp_path: Path) -> None:
    (found, _) = read(tmp_path, f"{LOSS[:20]}{RECORD}")
    assert [(event.kind, event.fields["path_text"]) for event in found] == [("checkpoint.reads", "/a-1_6.ckpt")]


@pytest.mark.parametrize(("prefix", "tag"), PREFIXES.values(), ids=PREFIXES)
def test_the_columns_of_losses_have_the_same(tmp_path: Path, prefix: str, tag: str | None) -> None:
    del tag
    (events, _) = read(tmp_path, *[f"{prefix}{STEP}"] * 3)
    columns = LossScanner().scan(tmp_path / "job.log")
    assert columns.step.tolist() == [event.step for event in events] == [3, 3, 3]
    assert columns.loss.tolist() == [event.fields["loss"] for event in events]


def test_a_log_that_is_followed_is_read_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"[rank1]: {LOSS}\n")
    tail = LogTail((tmp_path / "log").open("rb"), READERS, name="log")
    assert [event.fields["tag_text"] for event in tail.new_events()] == ["rank1"]
    tail.close()


@given(line=st.text(max_size=200))
def test_no_text_makes_it_fail_and_a_plain_line_stays_whole(line: str) -> None:
    for before in ("", '{"log":"', "2025-13-41T99:99:99Z ", "0001-01-01T00:00:00+23:59 ", "[1,3]<stdout>:"):
        assert strip_launcher(before + line).text is not None
    assert strip_launcher(f"x{line.replace(chr(27), '')}").text == f"x{line.replace(chr(27), '')}"
