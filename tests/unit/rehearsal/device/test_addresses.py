"""On several nodes stand-ins listen on a number of a private network, and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from chaos.jobs.kind import JobError, Launch
from chaos.machine.job.protocol import Place
from chaos.rehearsal.device.addresses import why_open
from chaos.rehearsal.device.rendezvous import Rendezvous
from chaos.rehearsal.plain.job import KIND
from chaos.rehearsal.ttp.controller import Controller
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.timings import PROFILES
from chaos.scenario.models.scenario import Scenario

OPEN = {
    "node-1.example": "is a name, not a number",
    "localhost": "is a name, not a number",
    "8.8.8.8": "is public",
    "2606:4700::1111": "is public",
    "0.0.0.0": "is not one node's own",
    "::": "is not one node's own",
    "224.0.0.1": "is not one node's own",
}


@pytest.mark.parametrize("address", ["10.0.0.5", "172.20.3.4", "192.168.7.10", "fd00::5", "127.0.0.2", "::1"])
def test_a_number_of_a_private_network_or_of_this_host_is_taken(address: str) -> None:
    assert why_open(address) is None


@pytest.mark.parametrize("address", OPEN)
def test_nothing_listens_on_a_name_or_for_everybody(address: str, tmp_path: Path) -> None:
    said = f"private network only: {address} {OPEN[address]}"
    meeting = Rendezvous(0, range(2), str(tmp_path), b"secret", on_refused=print, address=address)
    with pytest.raises(ValueError, match="ranks meet on a private network only") as refused:
        next(meeting.meet(lambda missing: ()))
    assert said in str(refused.value)
    controller = Controller(-1, 2, run="r", secret=b"secret", timings=PROFILES["fast"], log=TtpLog(None))
    with pytest.raises(ValueError, match="listens on the loopback or a private network only") as refused:
        controller.start(address, 25000, address)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", OPEN)
def test_a_rehearsal_on_such_a_node_is_refused_before_it_starts(address: str, tmp_path: Path) -> None:
    scenario = Scenario.model_validate(
        {"chaos": 1, "name": "x", "cluster": {"ranks": 2, "nodes": 2}, "job": {"kind": "plain", "steps": 4}}
    )
    python = Path(sys.executable)

    def launch(address: str) -> Launch:
        place = Place(1, 2, (1,), 2, address, "10.0.0.4", tmp_path)
        return Launch(scenario, tmp_path, tmp_path, tmp_path / "logs", False, (12345,), python, "standin", place)

    assert KIND.command(launch("10.0.0.5")).argv
    with pytest.raises(JobError, match="stand-ins listen on a private network only: the address of node 1, "):
        KIND.command(launch(address))
