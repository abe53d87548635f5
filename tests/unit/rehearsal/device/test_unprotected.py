"""Only ranks that nothing protects leave a collective whose rank has gone: others are told to stop by a mechanism."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.agent.start import Agent
from chaos.rehearsal.device.interconnect import Fabric


def fabric(tmp_path: Path, **settings: Any) -> Fabric:
    configuration = SimpleNamespace(
        settings=settings, socket=str(tmp_path / "agents"), meeting=str(tmp_path), attempt="train"
    )
    place = SimpleNamespace(rank=0, ranks=2)
    barriers = SimpleNamespace(actions={})
    return Fabric(cast(Agent, SimpleNamespace(configuration=configuration, place=place, barriers=barriers, record=1)))


@pytest.mark.parametrize(
    ("switches", "settings", "unprotected"),
    [
        ("", {"unprotected": True}, True),
        ("", {"unprotected": True, "hccl": {"exec_timeout": 1800}}, False),
        ("{TTP:1}", {"unprotected": True}, False),
        ("", {"unprotected": False}, False),
        ("", {}, False),
    ],
)
def test_who_is_unprotected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switches: str, settings: dict[str, Any], unprotected: bool
) -> None:
    monkeypatch.setenv("MS_ENABLE_TFT", switches)
    assert fabric(tmp_path, **settings)._is_unprotected() is unprotected
