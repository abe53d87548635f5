"""A processor in PyTorch mode: its two waits in a repair, its texts, its end."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from chaos.rehearsal.ttp import processor as module
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.processor import RETRY, Handler, Processor
from chaos.rehearsal.ttp.timings import PROFILES

SECONDS = 30.0


class Left(Exception):
    """The process would have ended."""


def made(handlers: dict[str, Handler], *, for_pytorch: bool = True, leaving: float = 0.0) -> Processor:
    return Processor(
        1,
        run="run-1",
        secret=b"secret",
        timings=replace(PROFILES["fast"], leaving=leaving),
        log=TtpLog(None),
        handlers=handlers,
        for_pytorch=for_pytorch,
    )


def cleaning(answer: Any) -> dict[str, Handler]:
    return {"clean": (lambda is_uce, arguments, context: answer, None)}


@pytest.mark.parametrize("answer", [None, 0, 2])
def test_the_training_waits_until_its_device_is_clean(answer: int | None) -> None:
    processor, ended = made(cleaning(answer)), threading.Event()

    def wait() -> None:
        assert processor.wait_clean() == RETRY
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not ended.is_set()
    processor._take_part("clean", {"message": "clean"})
    assert ended.wait(SECONDS)


def test_a_device_that_is_not_clean_lets_nobody_go_on() -> None:
    processor = made(cleaning(1))
    processor._take_part("clean", {"message": "clean"})
    assert not processor._clean.is_set()


def leave(code: int, text: str) -> None:
    raise Left(code, text)


def test_a_rank_of_pytorch_leaves_with_2_a_while_after_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(module, "leave", leave)
    monkeypatch.setattr("chaos.rehearsal.ttp.processor.time.sleep", waited.append)
    with pytest.raises(Left) as left:
        made({}, leaving=10.0)._exit("the controller has ordered it")
    assert left.value.args == (2, "mindio_ttp, rank 1 exits: the controller has ordered it")
    assert waited == [10.0]


def test_an_update_that_is_stopped_has_torch_npus_text() -> None:
    for for_pytorch, words in ((True, r"^FORCE STOP\."), (False, "^ForceStopError")):
        processor = made({}, for_pytorch=for_pytorch)
        processor._stopping = True
        with pytest.raises(RuntimeError, match=words):
            processor.begin_update()


def test_the_wait_before_leaving_is_the_vendors_in_its_profile() -> None:
    assert PROFILES["vendor"].leaving == 10.0 > PROFILES["fast"].leaving
