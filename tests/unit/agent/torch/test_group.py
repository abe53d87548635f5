"""The moment when a process group is ready is recorded, with its timeout, and the job sees no difference."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.record import Record
from chaos.agent.torch.group import hook_group
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


def distributed(calls: list[Any]) -> Any:
    module: Any = ModuleType("torch.distributed.distributed_c10d")

    def init_process_group(backend: Any = None, init_method: Any = None, timeout: Any = None) -> str:
        """PyTorch's own words."""
        calls.append((backend, init_method, timeout))
        return "its result"

    module.init_process_group = init_process_group
    return module


@pytest.fixture
def training(record: Record) -> Training:
    return Training(record, Barriers(record, None, []), Digests(record, 0))


@pytest.mark.parametrize(
    ("args", "kwargs", "timeout"),
    [
        (("gloo",), {}, {}),
        (("gloo",), {"timeout": timedelta(seconds=10)}, {"timeout": 10.0}),
        (("gloo", "env://", timedelta(minutes=2)), {}, {"timeout": 120.0}),
        ((), {"timeout": None}, {}),
    ],
)
def test_a_ready_group_is_recorded_with_the_timeout_of_the_script(
    training: Training, events: Events, args: Any, kwargs: Any, timeout: dict[str, float]
) -> None:
    calls: list[Any] = []
    module = distributed(calls)
    hook_group(training, module)
    assert module.init_process_group(*args, **kwargs) == "its result"
    assert module.init_process_group.__doc__ == "PyTorch's own words."
    assert len(calls) == 1
    (event,) = events("group.ready")
    assert event.data == timeout


def test_a_group_that_fails_is_not_ready(training: Training, events: Events) -> None:
    module: Any = ModuleType("torch.distributed.distributed_c10d")

    def init_process_group(*args: Any) -> None:
        raise RuntimeError("Gloo connectFullMesh failed")

    module.init_process_group = init_process_group
    hook_group(training, module)
    with pytest.raises(RuntimeError, match="connectFullMesh"):
        module.init_process_group("gloo")
    assert events("group.ready") == []
