"""A plain rank under the SDK calls what MindSpore's callback calls, in its order, and reports errors by its rules."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.state import FLAG, State
from chaos.rehearsal.plain.tolerance import JOINED, Tolerance, keeps_flag, protects, switched_on

RANKS, REPAIRED = 4, 7
STATES = ("RS_NORMAL", "RS_UCE", "RS_HCCL_FAILED", "RS_INIT_FINISH", "RS_PREREPAIR_FINISH", "RS_UNKNOWN")
KINDS = ("RT_SEND", "RT_UCE_HIGHLEVEL", "RT_UCE_LOWLEVEL", "RT_RECV_REPAIR")


class Sdk(ModuleType):
    """The SDK: notes every call, and answers as it is told."""

    def __init__(self) -> None:
        super().__init__("mindio_ttp.framework_ttp")
        self.calls: list[tuple[Any, ...]] = []
        self.answers: dict[str, Any] = {
            "tft_is_reboot_node": False,
            "tft_wait_next_action": 0,
            "tft_get_repair_step": REPAIRED,
            "tft_get_repair_type": "retry",
        }
        self.ReportState = SimpleNamespace(**{name: SimpleNamespace(value=name) for name in STATES})
        self.RepairType = SimpleNamespace(**{name: SimpleNamespace(value=name) for name in KINDS})
        self.Action = SimpleNamespace(RETRY=SimpleNamespace(value=0), EXIT=SimpleNamespace(value=1))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("tft_"):
            raise AttributeError(name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, *arguments))
            return self.answers.get(name)

        return call

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]

    def handler(self, name: str) -> Any:
        (function,) = [call[1] for call in self.calls if call[0] == f"tft_register_{name}_handler"]
        return function


class Device:
    """What the handlers do to the device."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.times = [0, 0, 0]
        self.strategy = "RS_UCE_HIGHLEVEL"

    def reduce(self, array: Any) -> Any:
        self.did.append("reduce")
        return array * RANKS

    def update_times(self) -> list[int]:
        return self.times

    def memory_strategy(self) -> str:
        return self.strategy

    def copy(self, parameters: list[Any], source: int, target: int) -> None:
        self.did.append((len(parameters), source, target))

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.did.append(name)


class Rank:
    def __init__(self, sdk: Sdk, *on: str, rank: int = 1) -> None:
        self.sdk, self.device = sdk, Device()
        mesh, mechanisms = Mesh(rank, RANKS, 2), frozenset(on)
        self.state = State(1, mesh, flagged=keeps_flag(mechanisms))
        checkpoints: Any = SimpleNamespace(per_epoch=10)
        self.tolerance = Tolerance(mechanisms, self.device, self.state, mesh, checkpoints)  # type: ignore[arg-type]


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> Sdk:
    package, module = ModuleType("mindio_ttp"), Sdk()
    package.framework_ttp = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mindio_ttp", package)
    monkeypatch.setitem(sys.modules, "mindio_ttp.framework_ttp", module)
    monkeypatch.setenv("MS_TFT_IP", "127.0.0.1")
    monkeypatch.setenv("MS_TFT_PORT", "12345")
    monkeypatch.delenv("MINDX_TASK_ID", raising=False)
    return module


def test_what_is_on_is_read_as_mindspore_writes_it() -> None:
    assert switched_on({"MS_ENABLE_TFT": "{TTP:1,UCE:0, ARF:1}"}) == {"TTP", "ARF"}
    assert switched_on({}) == frozenset()
    assert protects(frozenset({"TSP"}))
    assert not protects(frozenset({"TRE", "RSC"}))
    assert not keeps_flag(frozenset({"TSP"}))


@pytest.mark.parametrize(("rank", "outside", "hosts"), [(0, False, True), (1, False, False), (0, True, False)])
def test_rank_0_hosts_the_controller_unless_somebody_outside_does(
    sdk: Sdk, monkeypatch: pytest.MonkeyPatch, rank: int, outside: bool, hosts: bool
) -> None:
    if outside:
        monkeypatch.setenv("MINDX_TASK_ID", "1")
    Rank(sdk, "TTP", rank=rank).tolerance.start()
    controller = ["tft_init_controller", "tft_start_controller"]
    assert sdk.names() == [
        *(controller if hosts else []),
        "tft_init_processor",
        "tft_start_processor",
        "tft_is_reboot_node",
    ]


def test_the_calls_of_a_step_come_in_mindspores_order(sdk: Sdk) -> None:
    rank = Rank(sdk, "TTP", "TSP")
    for _ in range(2):
        rank.tolerance.begin_update()
        assert not rank.state.consistent
        rank.state.parameters["global_step"] += 1
        rank.tolerance.end_step()
        assert rank.state.consistent
    group = [{"type": 1, "rank_list": [1, 3], "replica_cnt": 2, "replica_shift": 0}]
    assert sdk.calls == [
        ("tft_start_updating_os", -1),
        ("tft_set_optimizer_replica", 1, group),
        ("tft_end_updating_os", 1),
        ("tft_pause_train", 1),
        ("tft_start_updating_os", -1),
        ("tft_end_updating_os", 2),
        ("tft_pause_train", 2),
    ]
    assert rank.device.did == ["reduce", "reduce"]


def test_with_pauses_alone_no_update_is_reported(sdk: Sdk) -> None:
    rank = Rank(sdk, "TSP")
    rank.tolerance.begin()
    rank.tolerance.begin_update()
    rank.tolerance.end_step()
    rank.tolerance.end()
    assert sdk.calls == [("tft_pause_train", 0)]
    assert rank.device.did == ["tell_trained"]  # or a controller outside would wait for it


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("UCEError error occurs when execute, error_code=507053.", "RS_UCE"),
        ("HCCEError error occurs when execute", "RS_HCCL_FAILED"),
        ("SuspectRemoteError error occurs", "RS_HCCL_FAILED"),
        ("ForceStopError error occurs when execute: told to stop", "RS_NORMAL"),
        (JOINED, "RS_PREREPAIR_FINISH"),
    ],
)
def test_errors_are_reported_by_their_text_and_the_repair_is_waited_for(sdk: Sdk, text: str, reported: str) -> None:
    assert Rank(sdk, "UCE").tolerance.recover(RuntimeError(text)) == REPAIRED
    assert sdk.calls == [("tft_report_error", reported), ("tft_wait_next_action",), ("tft_get_repair_step",)]


@pytest.mark.parametrize(("on", "text"), [("TTP", "UCEError"), ("UCE", "division by zero")])
def test_what_nothing_repairs_is_reported_as_unknown_and_ends_the_rank(sdk: Sdk, on: str, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        Rank(sdk, on).tolerance.recover(RuntimeError(text))
    assert sdk.calls == [("tft_report_error", "RS_UNKNOWN")]


@pytest.mark.parametrize("repairable", [True, False])
def test_a_multi_bit_error_is_repaired_only_where_the_sdk_says_so(sdk: Sdk, repairable: bool) -> None:
    rank, error = Rank(sdk, "UCE"), RuntimeError("UCEError error occurs when execute, error_code=507054.")
    rank.device.times = [30, 10, 20]
    sdk.answers["tft_can_do_uce_repair"] = repairable
    if repairable:
        assert rank.tolerance.recover(error) == REPAIRED
    else:
        with pytest.raises(RuntimeError, match="507054"):
            rank.tolerance.recover(error)
    assert sdk.calls[:2] == [
        ("tft_can_do_uce_repair", 30, 10, 20),
        ("tft_report_error", "RS_UCE" if repairable else "RS_UNKNOWN"),
    ]


def test_where_the_sdk_says_exit_the_error_is_raised(sdk: Sdk) -> None:
    sdk.answers["tft_wait_next_action"] = 1
    with pytest.raises(RuntimeError, match="HCCEError"):
        Rank(sdk, "HCCE").tolerance.recover(RuntimeError("HCCEError"))


def test_the_new_process_of_a_lost_rank_waits_for_its_groups_before_it_has_handlers(sdk: Sdk) -> None:
    sdk.answers["tft_is_reboot_node"] = True
    rank = Rank(sdk, "ARF")
    rank.tolerance.start()
    assert rank.tolerance.joins
    assert sdk.calls[-3:] == [
        ("tft_report_error", "RS_INIT_FINISH"),
        ("tft_get_reboot_type",),
        ("tft_wait_next_action",),
    ]
    sdk.answers["tft_wait_next_action"] = 1
    with pytest.raises(RuntimeError, match="ARF init failed"):
        rank.tolerance.start()


def registered(sdk: Sdk, *on: str) -> Rank:
    rank = Rank(sdk, *on)
    rank.tolerance.register()
    return rank


def test_handlers_are_those_of_mindspore(sdk: Sdk) -> None:
    registered(sdk, "UCE", "TSP")
    names = ("save_ckpt", "rename", "exit", "stop", "clean", "repair", "rebuild_group", "stream_sync")
    assert sdk.names() == [f"tft_register_{name}_handler" for name in names]


def test_a_rank_in_the_middle_of_its_update_is_not_stopped_but_one_without_memory_is(sdk: Sdk) -> None:
    rank = registered(sdk, "UCE")
    rank.state.parameters[FLAG][...] = RANKS
    with pytest.raises(RuntimeError, match="inconsistent state"):
        sdk.handler("stop")(None, rank)
    rank.tolerance.recover(RuntimeError("UCEError"))
    sdk.handler("stop")(None, rank)
    assert rank.device.did == ["stop"]


@pytest.mark.parametrize(("strategy", "answer"), [("RS_UCE_HIGHLEVEL", 0), ("RS_UCE_LOWLEVEL", 2), ("RS_OTHER", 1)])
def test_clean_says_what_the_memory_error_has_taken(sdk: Sdk, strategy: str, answer: int) -> None:
    rank = registered(sdk, "UCE")
    rank.device.strategy = strategy
    assert sdk.handler("clean")(True, None, rank) == answer
    assert sdk.handler("clean")(False, None, rank) == 0
    assert rank.device.did == ["resume", "resume"]


def test_where_processes_are_replaced_the_groups_are_rebuilt_and_not_resumed(sdk: Sdk) -> None:
    sdk.answers["tft_get_repair_type"] = "recover"
    rank = registered(sdk, "ARF")
    assert sdk.handler("clean")(False, None, rank) == 0
    sdk.handler("rebuild_group")([2], None, rank)
    assert rank.device.did == ["leave", "rebuild"]


@pytest.mark.parametrize(
    ("kind", "source", "target", "copies"),
    [
        ("RT_SEND", [1, 1], [3, 2], [(1, 3), (1, 2)]),
        ("RT_UCE_HIGHLEVEL", [3], [1], [(3, 1)]),
        ("RT_RECV_REPAIR", [3], [1], [(3, 1)]),
        ("RT_UCE_LOWLEVEL", [1], [1], []),
    ],
)
def test_all_parameters_are_copied_from_the_replica(
    sdk: Sdk, kind: str, source: list[int], target: list[int], copies: list[tuple[int, int]]
) -> None:
    rank = registered(sdk, "UCE")
    info = {"repair_type": kind, "src": source, "dst": target}
    sdk.handler("repair")(REPAIRED, True, target, info, None, rank)
    assert rank.device.did == [(len(rank.state.parameters), *copy) for copy in copies]
