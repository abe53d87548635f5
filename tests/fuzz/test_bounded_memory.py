"""Large input takes no large memory: measured as the peak of a process of its own, over what it took before."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.unit.observe.ckpt_writer import CkptWriter

pytestmark = pytest.mark.processes

MIB = 1 << 20
FIRST = b"2026-11-21 01:34:29.820321 1344 info [1344][TTP processor.cpp:1213] rank:3 receive prelock message\n"
LAST = b"2026-11-21 01:34:30.820321 1344 info [1344][TTP processor.cpp:1283] rank:3 reply prelock msg success\n"

_PRELUDE = """
import resource, sys
from datetime import timezone
from pathlib import Path
from chaos.history.jsonl import read_lines
from chaos.history.reader import read_history
from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from chaos.observe.checkpoints.group_info import GroupInfoError, read_group_info
from chaos.observe.logs.losses.loss_columns import LossScanner
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log
import google.protobuf.descriptor_pb2, google.protobuf.message_factory, google.protobuf.unknown_fields

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

path = Path(sys.argv[1])
before = peak()
"""


def grown(path: Path, code: str, *, seconds: float = 60) -> tuple[int, str]:
    """MiB by which the peak of a new process grows while it runs ``code`` over ``path``, and what it prints."""
    script = _PRELUDE + textwrap.dedent(code) + "\nprint(peak() - before)\n"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=seconds, check=True
    )
    *said, size = done.stdout.splitlines()
    return int(size), "\n".join(said)


READ_LOG = """
scan = LogScan()
events = sum(1 for _ in read_log(path, built_in_readers(timezone.utc), scan=scan))
columns = LossScanner().scan(path)
print(events, scan.lines, scan.cut, columns.lines)
"""


def test_a_line_of_ten_million_bytes(tmp_path: Path) -> None:
    path = tmp_path / "ttp_log.log.1"
    path.write_bytes(FIRST + b"x" * (10 * MIB) + b"\n" + LAST)
    size, said = grown(path, READ_LOG)
    assert said == "2 3 1 3"
    assert size < 30


def test_a_history_line_of_ten_million_bytes(tmp_path: Path) -> None:
    path = tmp_path / "harness.jsonl"
    path.write_bytes(b'{"a": "' + b"x" * (10 * MIB) + b'"}\n{}\n')
    size, said = grown(path, "print([line.text and len(line.text) for line in read_lines(path)])")
    assert said == "[None, 3]"
    assert size < 30


def test_a_history_of_brackets(tmp_path: Path) -> None:
    (tmp_path / "harness.jsonl").write_bytes((b'{"a":[' + b"[]," * 300_000 + b"[]]}\n") * 20)
    size, said = grown(tmp_path, "print(len(read_history(path).problems))")
    assert int(said) >= 20
    assert size < 30


def refused(error: str, call: str) -> str:
    return f"try:\n    {call}(path)\n    print('read')\nexcept {error} as error:\n    print(error)\n"


@pytest.mark.parametrize(
    ("part", "said"),
    [(b"\x08\x01", "more than 64 fields"), (b"\x98\x06\x01", "more than 64 fields")],
    ids=["dims", "unknown fields"],
)
def test_a_checkpoint_of_many_small_fields(tmp_path: Path, part: bytes, said: str) -> None:
    ckpt = CkptWriter()
    path = tmp_path / "bomb.ckpt"
    tensor = part * (8 * MIB // len(part)) + ckpt.field(2, b"Float32") + ckpt.field(3, bytes(4))
    path.write_bytes(ckpt.field(1, ckpt.field(1, b"w") + ckpt.field(2, tensor)))
    size, text = grown(path, refused("CheckpointError", "read_checkpoint"))
    assert said in text
    assert size < 40


def test_a_checkpoint_of_256_mebibytes(tmp_path: Path) -> None:
    ckpt = CkptWriter()
    path = tmp_path / "large.ckpt"
    path.write_bytes(ckpt.record("w", [64 * MIB], "Float32", bytes(64 * MIB)) * 4)
    size, text = grown(path, "print(read_checkpoint(path).tensors['w'].finite)")
    assert text == "True"
    assert size < 40


def test_a_safetensors_of_256_mebibytes(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (64 * MIB, 256 * MIB)
    path = tmp_path / "large.safetensors"
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(file.tell() + 256 * MIB)
    size, text = grown(path, "print(read_checkpoint(path).tensors['w'].finite)")
    assert text == "True"
    assert size < 40


def test_a_safetensors_header_of_brackets(tmp_path: Path) -> None:
    header = b'{"a":[' + b"[]," * (3 * MIB) + b"[]]}"
    path = tmp_path / "bomb.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    size, text = grown(path, refused("CheckpointError", "read_checkpoint"))
    assert "nothing but brackets" in text
    assert size < 40


def test_group_information_of_empty_groups(tmp_path: Path) -> None:
    path = tmp_path / "group_info.pb"
    path.write_bytes(b"\x0a\x00" * (MIB // 2) + b"\x12\x02\x08\x01")
    size, text = grown(path, refused("GroupInfoError", "read_group_info"))
    assert "more than 10000 communication groups" in text
    assert size < 150


@pytest.mark.parametrize("name", ["plan.json", "run.json", "group_info.pb"])
def test_a_huge_file_is_refused_after_its_limit(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(3 << 30)
    code = "from chaos.base.plain_files import UnreadableFile, read_plain\n" + refused("UnreadableFile", "read_plain")
    size, text = grown(path, code)
    assert "larger than 67,108,864 bytes" in text
    assert size < 150


@pytest.mark.nightly
@pytest.mark.parametrize("filling", ["holes", "lines"])
def test_a_log_of_two_gigabytes(tmp_path: Path, filling: str) -> None:
    path = tmp_path / "ttp_log.log.1"
    line = b"2026-11-21 01:34:29.820321 1344 info [1344][TTP processor.cpp:1213] something that nobody knows\n"
    block = line * (MIB // len(line))
    with path.open("wb") as file:
        file.write(FIRST)
        if filling == "holes":
            file.truncate(2 << 30)
            file.seek(0, 2)
            file.write(b"\n")
        else:
            while file.tell() < 2 << 30:
                file.write(block)
        file.write(LAST)
    size, said = grown(path, READ_LOG, seconds=3600)
    assert said.startswith("2 ")
    assert size < 100
