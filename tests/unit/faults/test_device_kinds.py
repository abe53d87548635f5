"""Faults of a device, driven by the vendor's tools as recorded: evidence, undo on disk before, and no guess."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import Clock
from chaos.base.registry import registry
from chaos.base.wait import Patience
from chaos.faults.ascend import device_reset, npu_link_down
from chaos.faults.ascend.device_reset import DeviceReset
from chaos.faults.ascend.npu_link_down import NpuLinkDown
from chaos.faults.device_errors.raised import RaisedError
from chaos.faults.kind import FaultKind, FaultMissed, Victim, needed_from_start
from chaos.faults.nodes import node_reboot
from chaos.faults.nodes.node_reboot import NodeReboot, RebootsNodes
from chaos.heal.undo import UNDO_ACTIONS, UndoContext, undo_open_steps
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.commands import Done, NoSuchTool, SystemCommands
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import COMMUNICATION, NONE, JobEffect, may_be_planned
from chaos.run.inject.injection import Injection
from chaos.scenario.models.scenario import Scenario
from tests.kit.runs.recorded import FAULTY, HEALTHY, Recorded, recorded
from tests.unit.run.fakes import FakeConnection, FakeJob, at_barrier, identity, planned

MAP = ("npu-smi info -m", recorded("npu_smi_mapping", "910b3"))
TABLE = recorded("npu_smi_table", "910b2c-25.0.rc1.2").replace("33777 ", "101   ").replace("33776 ", "100   ")
INFO = ("npu-smi info", TABLE)
HEALTH = "hccn_tool -i 1 -net_health -g"
DOWN = "hccn_tool -i 1 -link -s down"
RECOVER = "hccn_tool -i 1 -cfg recovery"
RESET = "npu-smi set -t reset -i 1 -c 0"
DONE = recorded("npu_smi_reset", "ok")
ROOT_ONLY = Done(("hccn_tool",), 1, "", "permission denied: only root user is allowed")


@dataclass(frozen=True)
class Played:
    """A machine whose tools answer as recorded, and on which process 10R is rank R on device R."""

    commands: Recorded

    def variables(self, identity: ProcessIdentity) -> dict[str, str]:
        return {"DEVICE_ID": str(identity.pid - 100)}


def victim(rank: int = 1) -> Victim:
    return Victim(rank, identity(rank), Path("record"), fault="down")


class Driven:
    """One fault, driven as a run drives it: injected, told in the history, and undone from the ledger."""

    def __init__(self, kind: FaultKind, commands: Recorded, folder: Path, clock: Clock) -> None:
        self.ledger, self.folder, self.clock, self.commands = Ledger(folder / "undo.jsonl"), folder, clock, commands
        self.job = FakeJob()
        (folder / "history").mkdir()
        fault = planned(1, id="down", kind=kind.name, trigger={"elapsed": 0.0})
        with HistoryWriter(folder / "history" / "harness.jsonl", writer="harness", run="r", clock=clock) as history:
            injection = Injection(
                (fault,),
                {kind.name: kind},
                history=history,
                ledger=self.ledger,
                attempt="train",
                patience=Patience(30, clock),
                records=folder,
            )
            injection.known.elapsed = 1.0
            injection.inject_due(self.job, {1: identity(1)})

    def events(self) -> dict[str, dict[str, Any]]:
        return {event.event: event.data for event in read_history(self.folder / "history").events}

    def undone(self, commands: Recorded | None = None) -> list[tuple[bool, str]]:
        context = UndoContext("token", self.clock, commands=commands or self.commands)
        return [(outcome.ok, outcome.how) for outcome in undo_open_steps(self.ledger, UNDO_ACTIONS, context)]


@pytest.mark.parametrize("kind", [npu_link_down.KIND, device_reset.KIND, node_reboot.KIND], ids=lambda kind: kind.name)
def test_a_kind_is_registered_with_its_hazard(kind: FaultKind) -> None:
    assert registry("faults").load(kind.name) is kind
    assert may_be_planned(kind.effect)
    assert "a scenario has to allow it by name" in str(needed_from_start(kind))
    assert kind.hazard is not None and kind.hazard.disturbs and kind.hazard.undone


def test_a_link_goes_down_with_the_vendors_word_before_and_after_and_comes_up_again(
    tmp_path: Path, clock: Clock
) -> None:
    before = [MAP, INFO, (HEALTH, HEALTHY), (DOWN, ""), (HEALTH, HEALTHY), (HEALTH, FAULTY)]
    commands = Recorded([*before, (RECOVER, ""), (HEALTH, FAULTY), (HEALTH, HEALTHY)])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    (evidence,) = run.events()["fault.landed"]["evidence"]
    assert evidence["net_health"] == {"before": "Success", "after": "Fault"}
    assert evidence["device"] == {"npu": 1, "chip": 0, "logic": 1, "card": 1}
    (step,) = run.ledger.open_steps()
    assert (step.action, step.arguments) == ("recover-link", {"card": 1})
    assert run.undone() == [(True, "recovered the network of card 1: net health Success")]
    assert (run.ledger.open_steps(), commands.left) == ([], [])


def test_the_undo_is_on_disk_before_the_link_goes_down(tmp_path: Path, clock: Clock) -> None:
    commands = Recorded([MAP, INFO, (HEALTH, HEALTHY), (DOWN, ROOT_ONLY)])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    assert "only root user is allowed" in run.events()["fault.missed"]["reason"]
    assert [step.action for step in run.ledger.open_steps()] == ["recover-link"]


def test_a_card_that_is_not_healthy_before_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    commands = Recorded([MAP, INFO, (HEALTH, "net health status: Receive timeout\n")])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    assert "is 'Receive timeout' before the fault" in run.events()["fault.missed"]["reason"]
    assert run.ledger.open_steps() == []
    assert "fault.injecting" not in run.events()


UNKNOWN = (HEALTH, "Segmentation fault\n")


def test_a_tool_that_fails_or_babbles_right_after_the_link_went_down_is_asked_again(
    tmp_path: Path, clock: Clock
) -> None:
    after: list[tuple[str, str | Done]] = [(HEALTH, ROOT_ONLY), UNKNOWN, (HEALTH, FAULTY)]
    commands = Recorded([MAP, INFO, (HEALTH, HEALTHY), (DOWN, ""), *after])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    (evidence,) = run.events()["fault.landed"]["evidence"]
    assert (evidence["net_health"], commands.left) == ({"before": "Success", "after": "Fault"}, [])


def test_an_answer_that_nobody_knows_is_quoted_and_the_link_recovered_all_the_same(
    tmp_path: Path, clock: Clock
) -> None:
    commands = Recorded([MAP, INFO, (HEALTH, HEALTHY), (DOWN, ""), *[UNKNOWN] * 5000])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    reason = run.events()["fault.missed"]["reason"]
    assert "of 30 s has expired" in reason and "'Segmentation fault'; nothing is guessed" in reason
    assert run.undone(Recorded([(RECOVER, ""), (HEALTH, HEALTHY)]))[0][0]


def test_after_the_link_went_down_a_tool_that_is_gone_is_not_waited_for(tmp_path: Path, clock: Clock) -> None:
    class Gone(Recorded):
        def __call__(self, *argv: str, answer: str = "") -> Done:
            if not self.left:
                raise NoSuchTool("there is no hccn_tool on this machine")
            return super().__call__(*argv, answer=answer)

    before = clock.mono()
    commands = Gone([MAP, INFO, (HEALTH, HEALTHY), (DOWN, "")])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    assert run.events()["fault.missed"]["reason"] == "there is no hccn_tool on this machine"
    assert clock.mono() - before < 10**9


def test_a_link_that_stays_down_is_told_with_what_to_do_by_hand(tmp_path: Path, clock: Clock) -> None:
    commands = Recorded([MAP, INFO, (HEALTH, HEALTHY), (DOWN, ""), (HEALTH, FAULTY)])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    calls = [(RECOVER, ""), *[(HEALTH, FAULTY)] * 5000]
    ((ok, how),) = run.undone(Recorded(calls))
    assert not ok
    assert "it says Fault" in how
    assert f"by hand, as root: {RECOVER}; then {HEALTH} must say Success" in how
    assert run.ledger.open_steps() != []
    tries = Recorded([(RECOVER, ROOT_ONLY)] * 200)
    ((ok, how),) = run.undone(tries)
    assert not ok and "only root user" in how and RECOVER in how
    assert 100 < 200 - len(tries.left) <= 121  # once a second, and not at every look


def test_a_recovery_that_fails_in_passing_is_tried_again(tmp_path: Path, clock: Clock) -> None:
    commands = Recorded([MAP, INFO, (HEALTH, HEALTHY), (DOWN, ""), (HEALTH, FAULTY)])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    busy = Done(("hccn_tool",), 1, "Recovery failed. Check '/var/log/hccn_tool/hccn_config.log' for details.")
    tries = Recorded([(RECOVER, busy), (RECOVER, busy), (RECOVER, ""), (HEALTH, HEALTHY)])
    assert run.undone(tries) == [(True, "recovered the network of card 1: net health Success")]
    assert tries.left == []


def test_while_a_card_comes_back_a_tool_that_fails_or_prints_no_number_is_asked_again(
    tmp_path: Path, clock: Clock
) -> None:
    """A chip in its reset: npu-smi fails, then has a table with a field that is none yet."""
    busy = Done(("npu-smi", "info"), 255, "", "DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)")
    half = TABLE.replace("| 1     910B2C ", "| NA    910B2C ")
    assert half != TABLE
    waits: dict[str, list[tuple[str, str | Done]]] = {
        "see-chip": [("npu-smi info", busy), ("npu-smi info", half), INFO],
        "recover-link": [(RECOVER, ""), (HEALTH, ROOT_ONLY), (HEALTH, "Segmentation fault\n"), (HEALTH, HEALTHY)],
    }
    for action, calls in waits.items():
        ledger, commands = Ledger(tmp_path / action), Recorded(calls)
        ledger.record(UndoStep("x", "reset", action, {"card": 1, "npu": 1, "chip": 0}))
        ((undone),) = undo_open_steps(ledger, UNDO_ACTIONS, UndoContext("token", clock, commands=commands))
        assert (undone.ok, commands.left) == (True, []), undone.how


def test_a_card_that_never_answers_again_is_told_with_its_last_words(tmp_path: Path, clock: Clock) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    ledger.record(UndoStep("x", "reset", "see-chip", {"npu": 1, "chip": 0}))
    calls = Recorded([("npu-smi info", ROOT_ONLY)] * 7000)
    ((undone),) = undo_open_steps(ledger, UNDO_ACTIONS, UndoContext("token", clock, commands=calls))
    assert not undone.ok
    assert "of 300 s has expired" in undone.how and "only root user" in undone.how


def test_a_tool_that_is_gone_is_not_waited_for(tmp_path: Path, clock: Clock) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    ledger.record(UndoStep("x", "reset", "see-chip", {"npu": 1, "chip": 0}))
    before = clock.mono()
    commands = SystemCommands(find=lambda name: None)
    ((undone),) = undo_open_steps(ledger, UNDO_ACTIONS, UndoContext("token", clock, commands=commands))
    assert not undone.ok and "there is no npu-smi on this machine" in undone.how
    assert clock.mono() - before < 10**9


def test_a_process_on_no_card_is_missed_before_anything_is_done(tmp_path: Path, clock: Clock) -> None:
    commands = Recorded([MAP, ("npu-smi info", recorded("npu_smi_table", "910b2c-25.0.rc1.2"))])
    run = Driven(NpuLinkDown(Played(commands)), commands, tmp_path, clock)
    assert "lists process 101 of rank 1 on no chip" in run.events()["fault.missed"]["reason"]


@pytest.mark.parametrize("arguments", [{}, {"card": "1"}, {"card": True}, {"card": -1}, {"card": 10**9}])
def test_a_ledger_that_names_no_card_runs_no_tool(tmp_path: Path, clock: Clock, arguments: dict[str, Any]) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    ledger.record(UndoStep("x", "down", "recover-link", arguments))
    ((undone),) = undo_open_steps(ledger, UNDO_ACTIONS, UndoContext("token", clock, commands=Recorded([])))
    assert not undone.ok and "does not name a card" in undone.how


def test_within_one_server_a_link_that_is_down_does_not_affect_the_job() -> None:
    def at(nodes: int) -> JobEffect:
        cluster = {"ranks": 4, "nodes": nodes}
        scenario = Scenario.model_validate({"chaos": 1, "name": "x", "cluster": cluster, "job": {"steps": 3}})
        return npu_link_down.KIND.effect_in(scenario)

    assert (at(1), at(2)) == (NONE, COMMUNICATION)


def test_a_reset_is_confirmed_proven_by_the_end_of_the_process_and_followed_until_the_chip_is_well(
    tmp_path: Path, clock: Clock
) -> None:
    sick = TABLE.replace("1     910B2C              | OK   ", "1     910B2C              | Alarm")
    commands = Recorded([MAP, INFO, (RESET, DONE), ("npu-smi info", sick), INFO])
    kind = DeviceReset(Played(commands))
    (step,) = kind.undo_steps("reset", [victim()])
    job = FakeJob()
    kind.inject(job, victim())
    assert commands.answered[-1] == "y\n"
    assert kind.evidence(job, victim()) is None
    job.statuses[identity(1)] = ExitStatus(code=1)
    shown = kind.evidence(job, victim())
    assert shown is not None and (shown["command"], shown["exit"]) == (RESET, "exit code 1")
    assert shown["answer"]["status"] == "OK"
    ledger = Ledger(tmp_path / "undo.jsonl")
    ledger.record(step)
    ((undone),) = undo_open_steps(ledger, UNDO_ACTIONS, UndoContext("token", clock, commands=commands))
    assert (undone.ok, undone.how) == (True, "NPU 1 chip 0 is OK")


def test_a_reset_that_fails_with_exit_code_0_is_missed() -> None:
    failed = Recorded([MAP, INFO, (RESET, "\tStatus : FAIL\n\tMessage : Reset failed, the device is in use.\n")])
    with pytest.raises(FaultMissed, match=r"did not reset the chip; it said 'Status : FAIL"):
        DeviceReset(Played(failed)).inject(FakeJob(), victim())


@pytest.mark.parametrize("answer", ["", "Done.\n", DONE.replace("OK", "Busy")])
def test_an_answer_to_a_reset_that_no_document_shows_is_kept_as_such(answer: str) -> None:
    kind = DeviceReset(Played(Recorded([MAP, INFO, (RESET, answer)])))
    kind.inject(FakeJob(), victim())
    shown = kind.evidence(FakeJob(statuses={identity(1): ExitStatus(signal=9)}), victim())
    assert shown is not None and shown["answer"] == {"status": None, "said": repr(answer.strip())}


def test_a_rank_is_let_go_after_the_reset_since_it_ends_at_the_next_use_of_its_device(
    tmp_path: Path, clock: Clock
) -> None:
    commands, ledger, job = Recorded([MAP, INFO, (RESET, DONE)]), Ledger(tmp_path / "undo.jsonl"), FakeJob()
    kind = DeviceReset(Played(commands))

    class UsesItsDevice(FakeConnection):
        def answer(self, message: dict[str, Any]) -> None:
            super().answer(message)
            if not commands.left:
                job.statuses[identity(1)] = ExitStatus(code=1)

    connection = UsesItsDevice()
    with HistoryWriter(tmp_path / "harness.jsonl", writer="harness", run="r", clock=clock) as history:
        fault = planned(1, id="down", kind=kind.name)
        injection = Injection(
            (fault,),
            {kind.name: kind},
            history=history,
            ledger=ledger,
            attempt="train",
            patience=Patience(30, clock),
            records=tmp_path,
        )
        injection.hold(at_barrier(connection, 1, "down"))
        injection.inject_due(job, {1: identity(1)})
    assert connection.answers == [{"message": "go"}]
    (landed,) = [event for event in read_history(tmp_path).events if event.event == "fault.landed"]
    assert landed.data["evidence"][0]["barrier"] == {"step": 5, "phase": "step.end"}


def test_a_reset_that_is_refused_or_that_nobody_felt_is_missed() -> None:
    refused = Recorded([MAP, INFO, (RESET, Done(("npu-smi",), 1, "Failed to reset server"))])
    with pytest.raises(FaultMissed, match="Failed to reset server"):
        DeviceReset(Played(refused)).inject(FakeJob(), victim())
    kind = DeviceReset(Played(Recorded([MAP, INFO])))
    with pytest.raises(FaultMissed, match="exit code 0"):
        kind.evidence(FakeJob(statuses={identity(1): ExitStatus(code=0)}), victim())


class Nodes(FakeJob):
    """A job whose platform can reboot its nodes. ``boots`` are those of the node, the present one first."""

    boots: list[str | None]
    reboots: set[tuple[str, int]]
    ordered: list[int]

    def reboot_node(self, node: int, boot: str) -> None:
        if self.boots[0] != boot:
            raise PlatformError(f"node {node} is in boot {self.boots[0]}")
        self.ordered.append(node)
        self.boots.pop(0)

    def boot_of_node(self, node: int) -> str | None:
        return self.boots[0]


def in_boots(*boots: str | None) -> Nodes:
    job = Nodes()
    job.boots, job.reboots, job.ordered = list(boots), set(), []
    assert isinstance(job, RebootsNodes)
    return job


def on_node(rank: int, node: int = 1) -> Victim:
    one = victim(rank)
    return replace(one, identity=replace(one.identity, node=node))


def test_a_node_is_rebooted_once_and_another_boot_is_the_proof() -> None:
    job = in_boots("boot", None, "next")
    kind = NodeReboot()
    for rank in (0, 1):
        kind.inject(job, on_node(rank))
    assert job.ordered == [1]
    assert kind.evidence(job, on_node(0)) is None  # it does not answer yet
    job.boots.pop(0)
    assert kind.evidence(job, on_node(0)) == {"signal": None, "boot": {"before": "boot", "after": "next"}}


@pytest.mark.parametrize("now", ["next", None])
def test_a_node_that_went_before_it_was_ordered_was_not_rebooted_by_this_fault(now: str | None) -> None:
    job = in_boots(now)
    with pytest.raises(PlatformError, match="node 1 is in boot"):
        NodeReboot().inject(job, on_node(0))
    assert job.ordered == [] and job.reboots == set()


def test_a_platform_that_cannot_reboot_is_missed_in_words() -> None:
    with pytest.raises(FaultMissed, match="cannot reboot a node"):
        NodeReboot().inject(FakeJob(), victim())


def test_a_device_reports_the_very_error_that_the_effect_of_its_kind_names() -> None:
    kinds = registry("kinds")
    errors = {name: error for name in kinds.names() if (error := kinds.load(name).effect.error) is not None}
    assert errors.keys() == {"suspect-remote"}
    for name, error in errors.items():
        raised = registry("faults").load(name)
        assert isinstance(raised, RaisedError)
        assert error.code in raised.text
