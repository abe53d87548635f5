"""The device layer says what a device would say, and joins the ranks where the run's secret is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy
import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.barriers import Barriers
from chaos.agent.configuration import Configuration, Place
from chaos.agent.digests import Digests
from chaos.agent.record import Record
from chaos.agent.start import Agent
from chaos.history.reader import read_history
from chaos.rehearsal import finished_ranks
from chaos.rehearsal.device import device, interconnect
from chaos.rehearsal.device.communication_errors import CommunicationTimeout
from chaos.rehearsal.device.generations import Generations

pytestmark = pytest.mark.processes

SECONDS = 30

Make = Callable[..., Agent]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An agent in a rank of two, or in another process of the job."""
    (tmp_path / "secret").write_text("s3cret\n")

    def make(rank: int | None, role: str = "rank", *armed: dict[str, Any]) -> Agent:
        configuration = Configuration(
            "run-1", "train", str(tmp_path), str(tmp_path / "agents"), str(tmp_path / "secret")
        )
        place, imports = Place(role, rank, 2), AfterImport()
        if rank is None:
            return Agent(configuration, place, imports)
        record = Record(str(tmp_path), run="run-1", attempt="train", rank=rank)
        barriers = Barriers(record, None, list(armed))
        return Agent(configuration, place, imports, record, barriers, Digests(record, 1))

    return make


def test_the_scheduler_has_nothing_to_do_and_says_so(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    child = os.fork()
    if child == 0:
        device.install(make(None, "scheduler"))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "the scheduler of a rehearsal has nothing to do" in capfd.readouterr().err


def test_the_launcher_is_not_touched(make: Make) -> None:
    agent = make(None, "other")
    device.install(agent)
    assert agent.imports._hooks == {}


def test_rank_and_size_are_msruns(make: Make) -> None:
    module = ModuleType("mindspore.communication")
    module.get_rank = module.get_group_size = module.get_local_rank = None  # type: ignore[attr-defined]
    module.GlobalComm = SimpleNamespace(INITED=False)  # type: ignore[attr-defined]
    device.Device(make(1)).replace_communication(module)
    assert (module.get_rank(), module.get_rank("mccl_world_group"), module.get_group_size()) == (1, 1, 2)
    assert module.GlobalComm.INITED
    assert not hasattr(module, "init")


def test_ranks_join_once_in_a_directory_of_the_attempt_that_others_cannot_enter(make: Make, tmp_path: Path) -> None:
    devices = [device.Device(make(rank)) for rank in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        joined = list(pool.map(lambda communicator: communicator.join(), devices))
        sums = list(pool.map(lambda communicator: communicator.all_reduce(numpy.ones(2, "float32")), joined))
    assert [one.join() for one in devices] == joined
    assert [list(total) for total in sums] == [[2, 2], [2, 2]]
    (directory,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert directory.name.startswith("train")
    assert directory.stat().st_mode & 0o777 == 0o700


def test_over_a_network_each_rank_records_the_port_that_the_others_have_called(make: Make, tmp_path: Path) -> None:
    agents = [make(rank) for rank in range(2)]
    configured = [replace(agent.configuration, address="127.0.0.1") for agent in agents]
    devices = [device.Device(replace(agent, configuration=own)) for agent, own in zip(agents, configured, strict=True)]
    with ThreadPoolExecutor(2) as pool:
        joined = list(pool.map(lambda communicator: communicator.join(), devices))
    ports = {event.rank: event.data["port"] for event in read_history(tmp_path).select("communicator.joined")}
    assert set(ports) == {0, 1}
    assert ports[0] == joined[1]._peers[0].socket.getpeername()[1], "rank 1 has called rank 0"
    for one in joined:
        one.close()


def test_all_ranks_switch_to_the_backup_network_and_go_on_over_it(make: Make, tmp_path: Path) -> None:
    devices = [device.Device(make(rank)) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        before = list(pool.map(lambda communicator: communicator.join(), devices))
        assert list(pool.map(lambda communicator: communicator.switch_network([0, 1], [True, True]), devices)) == [
            True,
            True,
        ]
        after = list(pool.map(lambda communicator: communicator.join(), devices))
        sums = list(pool.map(lambda communicator: communicator.all_reduce(numpy.ones(2, "float32")), after))
    assert not set(before) & set(after)
    assert [list(total) for total in sums] == [[2.0, 2.0]] * 2
    joined = read_history(tmp_path).select("network.joined")
    assert sorted((event.rank, event.data["network"]) for event in joined) == [(0, "backup"), (1, "backup")]
    # A rank that is replaced later meets the others there.
    assert Generations(str(tmp_path), "train").place().endswith("backup")
    for one in after:
        one.close()


def test_a_rank_does_not_switch_alone(make: Make) -> None:
    one = device.Device(make(0))
    assert one.switch_network([0, 1], [True, False]) is False
    assert one._generations.network == "primary"


def test_the_jobs_own_all_reduce_sums_over_its_group(make: Make) -> None:
    devices = [device.Device(make(rank)) for rank in (0, 1)]
    modules = [ModuleType("mindspore.ops") for _ in devices]
    for rank, (one, module) in enumerate(zip(devices, modules, strict=True)):
        one.replace_operators(module)
        one._groups.create("alone", [rank])
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda communicator: list(communicator.all_reduce(numpy.ones(1, "float32"))), devices))
        alone = list(
            pool.map(lambda communicator: list(communicator.all_reduce(numpy.ones(1, "float32"), "alone")), devices)
        )
    assert (both, alone) == ([[2], [2]], [[1], [1]])
    assert modules[0].AllReduce(group="alone").add_prim_attr("fusion", 1)._group == "alone"
    with pytest.raises(ValueError, match="does not know 'max'"):
        modules[0].AllReduce("max")


def test_a_join_that_failed_is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interconnect, "_JOIN_LIMIT_SECONDS", 0.1)
    first = device.Device(make(0))
    with pytest.raises(CommunicationTimeout, match="for rank 1 to join"):
        first.join()
    monkeypatch.setattr(interconnect, "_JOIN_LIMIT_SECONDS", float(SECONDS))
    with ThreadPoolExecutor(2) as pool:
        ranks = list(pool.map(lambda communicator: communicator.join().rank, [first, device.Device(make(1))]))
    assert ranks == [0, 1]


def test_a_stranger_at_the_communicator_is_in_the_history(make: Make, tmp_path: Path) -> None:
    agent = make(0)
    device.Device(agent)._record_refused("who is this")
    (event,) = read_history(tmp_path).select("caller.refused")
    assert event.data == {"channel": "communicator", "what": "who is this"}


def test_only_the_device_target_is_another(make: Make) -> None:
    context = ModuleType("context")
    context.get_context = {"device_target": "CPU", "mode": 1}.get  # type: ignore[attr-defined]
    context.set_context = print  # type: ignore[attr-defined]
    module = ModuleType("utils")
    module.context = context  # type: ignore[attr-defined]
    device.Device(make(0)).replace_handle(module)
    assert (module.context.get_context("device_target"), module.context.get_context("mode")) == ("Ascend", 1)
    assert module.context.set_context is print
    assert context.get_context("device_target") == "CPU"


def fault_tolerance() -> ModuleType:
    """The framework's module, as far as the device layer touches it."""
    module = ModuleType("_train_fault_tolerance")
    module.context = module.ops = ModuleType("anything")  # type: ignore[attr-defined]
    module.TrainFaultTolerance = type("TrainFaultTolerance", (), {"end": lambda self, run_context: "left"})  # type: ignore[attr-defined]
    return module


def test_the_end_of_training_is_noted_also_where_the_processor_never_leaves(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(finished_ranks, "note", lambda end, rank: noted.append((end, rank)))
    module = fault_tolerance()
    device.Device(make(1)).replace_fault_tolerance(module)
    module.TrainFaultTolerance().end(None)
    assert noted == [("trained", 1)]


def test_the_beginning_of_an_update_is_told_and_is_a_barrier(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entries: list[int] = []
    sdk = ModuleType("mindio_ttp.framework_ttp")
    sdk.tft_start_updating_os = entries.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mindio_ttp", ModuleType("mindio_ttp"))
    monkeypatch.setitem(sys.modules, "mindio_ttp.framework_ttp", sdk)
    agent = make(0, "rank", {"fault": "kill", "step": 3, "phase": "optimizer.update"})
    assert agent.barriers is not None
    agent.barriers.step = 3
    module = fault_tolerance()
    device.Device(agent).replace_fault_tolerance(module)
    begin, end = module.TensorReport(), module.TensorReport().add_prim_attr("optimizer_end", True)
    assert begin("tft", "flag") == "flag"
    assert end("tft", "flag") == "flag"
    assert entries == [-1]
    (reached,) = read_history(tmp_path).select("barrier.reached")
    assert reached.data["phase"] == "optimizer.update"


def test_without_a_mechanism_of_the_sdk_nobody_is_told_and_none_is_needed(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "mindio_ttp", None)  # importing it is an error
    agent = make(0, "rank", {"fault": "kill", "step": 3, "phase": "optimizer.update"})
    assert agent.barriers is not None
    agent.barriers.step = 3
    module = fault_tolerance()
    device.Device(agent).replace_fault_tolerance(module)
    report = module.TensorReport().add_prim_attr("side_effect_mem", True).add_prim_attr("snapshot", True)
    assert report("tft", "flag") == "flag"
    assert len(read_history(tmp_path).select("barrier.reached")) == 1


def test_a_barrier_waits_for_every_rank(make: Make) -> None:
    module = ModuleType("comm_func")
    ranks = [device.Device(make(rank)) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        passed = []
        for one in ranks:
            one.replace_barrier(module)
            passed.append(pool.submit(module.barrier))
        for future in passed:
            assert future.result(60) is None
