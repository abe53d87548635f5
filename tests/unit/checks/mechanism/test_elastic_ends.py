"""How survivors end when torchrun restarts all ranks: by SIGTERM, or by an error of a collective."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.checks.mechanism.test_elastic_rule import GLOO, good, judged, log, new_end, raises, spoilt

MATRICES = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x16 and 32x4)"


@pytest.mark.parametrize(
    ("text", "base", "chain"),
    [
        (GLOO, "RuntimeError", {}),
        (f"DistBackendError: {GLOO}", "RuntimeError", {}),
        ("DistBackendError: NCCL communicator was aborted on rank 1.", "RuntimeError", {}),
        ("DistStoreError: wait timeout after 10000ms, keys: /0", "RuntimeError", {}),
        ("RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64", "RuntimeError", {}),
        ("RuntimeError: SUSPECT REMOTE ERROR", "RuntimeError", {}),
        ("Stopped: the training ended", "Exception", {"first": GLOO, "first_base": "RuntimeError", "wrapped": True}),
    ],
)
@pytest.mark.parametrize("how", [{"code": 1}, {"signal": 6}, {"signal": 15}])
def test_an_error_of_a_collective_is_a_sound_end(
    tmp_path: Path, text: str, base: str, chain: dict[str, Any], how: dict[str, int]
) -> None:
    story = good()
    new_end(story, 1, **how)
    raises(story, text, base, **chain)
    assert spoilt(story, tmp_path) == []


@pytest.mark.parametrize("how", [{"code": 1}, {"signal": 6}, {"signal": 15}])
def test_an_error_of_the_survivors_own_program_fails(tmp_path: Path, how: dict[str, int]) -> None:
    story = good()
    new_end(story, 1, **how)
    raises(story, "KeyError: 'labels'", "KeyError")
    ((verdict, seen),) = spoilt(story, tmp_path)
    assert verdict == "fail"
    assert seen.endswith("and its error is KeyError: 'labels', which no collective raises")


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("text", [MATRICES, "RuntimeError: UCE ERROR", "OSError: [Errno 5] Input/output error"])
def test_an_error_of_the_framework_that_is_of_no_collective_is_unknown(tmp_path: Path, text: str, closed: bool) -> None:
    story = good()
    new_end(story, 1, code=1)
    raises(story, text, text.partition(":")[0])
    if closed:
        log(tmp_path, "Sending process 101 closing signal SIGTERM")
    why = f"rank 1: exit code 1, and its error is {text}: whether a collective raised it is not known"
    assert spoilt(story, tmp_path) == [("unknown", why)]


def test_a_handler_of_sigterm_may_interrupt_the_script(tmp_path: Path) -> None:
    story = good()
    new_end(story, 1, code=1)
    raises(story, "KeyboardInterrupt: ", "KeyboardInterrupt")
    assert [verdict for verdict, _ in spoilt(story, tmp_path)] == ["unknown"]
    log(tmp_path, "Sending process 101 closing signal SIGTERM")
    assert spoilt(story, tmp_path) == []


WATCHDOG = (
    "[rank1]:[E1114 09:50:59.789610635 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=10000) ran for 10001 "
    "milliseconds before timing out."
)


def traceback_of(error: str) -> str:
    lines = ("Traceback (most recent call last):", '  File "train.py", line 9, in <module>', error)
    return "".join(f"[rank1]: {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("how", "text", "verdict"),
    [
        ({"signal": 6}, f"{WATCHDOG}\n", "pass"),
        ({"code": 1}, traceback_of(GLOO), "pass"),
        ({"code": 1}, traceback_of(MATRICES), "unknown"),
        ({"code": 1}, traceback_of("KeyError: 'labels'"), "unknown"),
        ({"signal": 6}, "step 6: loss 0.5\n", "unknown"),
        ({"signal": 6}, None, "unknown"),
    ],
)
def test_without_a_record_the_log_of_the_process_may_show_the_error(
    tmp_path: Path, how: dict[str, int], text: str | None, verdict: str
) -> None:
    story = good()
    new_end(story, 1, **how)
    (tmp_path / "logs" / "train").mkdir(parents=True)
    if text is not None:
        (tmp_path / "logs" / "train" / "worker_1.before-1.log").write_text(text)
        (tmp_path / "logs" / "train" / "worker_1.log").write_text("step 12: loss 0.1\n")
    found = spoilt(story, tmp_path)
    assert [seen for seen, _ in found] == ([] if verdict == "pass" else [verdict])
    if verdict == "pass":
        (finding,) = [finding for finding in judged(story, tmp_path) if "2 ended by SIGTERM" in finding.seen]
        assert finding.by_log
