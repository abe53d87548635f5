"""What ``hccn_tool`` prints. Documented: UnreadableOutput."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chaos.machine.ascend.hccn import HEALTH, read_link, read_net_health
from chaos.machine.ascend.unreadable import UnreadableOutput
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it as both."""
    del folder
    text = content.decode("utf-8", "replace")
    assert _read(read_net_health, text) in (None, *HEALTH)
    assert _read(read_link, text) in (None, "UP", "DOWN")


def _read(read: Callable[[str], str], text: str) -> str | None:
    try:
        return read(text)
    except UnreadableOutput as error:
        assert "hccn_tool" in str(error) and len(str(error)) < 2000
        return None


TARGET = Target("hccn", mutate_bytes, check)
