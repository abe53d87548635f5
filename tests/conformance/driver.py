"""Drives one conformance job under either SDK and tells what happened as a story that can be compared."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chaos
from chaos.base.wait import wait_for
from chaos.doctor import has_module
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.ttp.log import TtpLogReader
from tests.conformance.record import read_record

HERE = Path(__file__).parent
STANDIN = Path(chaos.__file__).parent / "rehearsal" / "sdk"
TREE = Path(chaos.__file__).parents[1]
DEFAULTS: dict[str, Any] = {
    "ranks": 4,
    "groups": [[0, 2], [1, 3]],
    "controller": 0,
    "agent": None,
    "silent": False,
    "arf": False,
    "pauses": False,
    "acts": [],
    "clean": {},
    "raising": {},
    "replace": True,
    "recount": None,
    "collective_limit": 300,
    "fast": {},
    "steps": 10,
}
STEP_SECONDS = {"vendor": 0.35, "fast": 0.02}
LIMIT_SECONDS = {"vendor": 240.0, "fast": 120.0}


@dataclass
class Story:
    """What a job did. Ranks are named ``2`` or, for the process that replaces a lost one, ``2+1``."""

    exits: dict[str, int | None]
    records: dict[str, list[dict[str, Any]]]
    log: list[LogEvent]
    saved: dict[int, list[int]]
    directory: Path = field(repr=False)

    def handlers(self, rank: str) -> list[list[Any]]:
        """The handlers called in a rank, in order: the name, then the arguments."""
        return [[line["name"], *line["values"]] for line in self.lines(rank, "handler")]

    def calls(self, rank: str) -> list[list[Any]]:
        """The SDK's answers to a rank's calls, in order: the name, the arguments, the result."""
        return [[line["name"], *line["values"]] for line in self.lines(rank, "call")]

    def dialogue(self) -> list[list[Any]]:
        """What controller and agent said to each other, in order."""
        host = "agent" if "agent" in self.records else "0"
        return [[line["name"], *line["values"]] for line in self.lines(host, "agent")]

    def states(self) -> list[str]:
        """The states that the controller entered."""
        return [event.fields["state"] for event in self.log if event.kind == "ttp.state"]

    def endings(self) -> dict[str, tuple[str, int]]:
        """The digest and the last step of each rank that trained to the end."""
        found = {rank: [line for line in lines if line["kind"] == "end"] for rank, lines in self.records.items()}
        return {rank: (lines[0]["name"], lines[0]["values"][0]) for rank, lines in found.items() if lines}

    def lines(self, rank: str, kind: str, name: str | None = None) -> list[dict[str, Any]]:
        """A rank's lines of one kind, and of one name."""
        lines = self.records.get(rank, [])
        return [line for line in lines if line["kind"] == kind and name in (None, line["name"])]

    def acted(self) -> dict[str, Any]:
        """The first act: when the fault was made."""
        acts = [line for lines in self.records.values() for line in lines if line["kind"] == "act"]
        return min(acts, key=lambda line: float(line["at"]))


def importable(sdk: str) -> bool:
    """Whether this SDK can be used here: the stand-in always, the vendor's where its package is installed."""
    return sdk == "standin" or has_module("mindio_ttp")


def play(job: dict[str, Any], sdk: str, timings: str, directory: Path, port: int) -> Story:
    """Run a job to its end. Raises AssertionError when it does not end."""
    played = _Played({**DEFAULTS, **job}, sdk, timings, directory, port)
    try:
        played.run()
    finally:
        played.end()
    return played.story()


class _Played:
    def __init__(self, job: dict[str, Any], sdk: str, timings: str, directory: Path, port: int) -> None:
        self.job = {
            **job,
            "port": port,
            "step_seconds": STEP_SECONDS[timings] if "step_seconds" not in job else job["step_seconds"],
            "limit": LIMIT_SECONDS[timings],
        }
        self.directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        (directory / "job.json").write_text(json.dumps(self.job))
        (directory / "secret").write_text(secrets.token_hex(8))
        (directory / "ttp").mkdir()
        configuration = {
            "run": "conformance",
            "attempt": "train",
            "history": str(directory),
            "secret": str(directory / "secret"),
            "settings": {"timings": timings},
        }
        (directory / "agent.json").write_text(json.dumps(configuration))
        path = [str(STANDIN)] if sdk == "standin" else []
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([*path, str(TREE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            "CHAOS_AGENT": str(directory / "agent.json"),
            "MINDIO_FOR_MINDSPORE": "1",
            "TTP_LOG_PATH": str(directory / "ttp"),
            "TTP_LOG_MODE": "PER_PROC",
            "OMP_NUM_THREADS": "1",
            **{str(key): str(value) for key, value in job.get("environment", {}).items()},
        }
        if job["controller"] == -1:
            self.environment["MINDX_TASK_ID"] = "conformance"

    def run(self) -> None:
        if self.job["controller"] == -1:
            self.start("agent", "-m", "tests.conformance.agent")
        for rank in range(self.job["ranks"]):
            self.start(str(rank), "-m", "tests.conformance.rank", str(rank), "0")
        stopped = {str(act["rank"]) for act in self.job["acts"] if act["what"] == "SIGSTOP"}
        wait_for("end of the ranks", lambda: self.ended(stopped), seconds=self.job["limit"], detail=self.output)

    def ended(self, stopped: set[str]) -> bool:
        """Whether all ranks are gone, but for the stopped ones. Starts the processes that the agent asks for."""
        wanted = self.directory / "replace-wanted"
        if wanted.exists() and self.job["replace"]:
            ranks = json.loads(wanted.read_text("utf-8"))
            wanted.unlink()
            self.replace(ranks)
        return all(
            process.poll() is not None for name, process in self.processes.items() if name not in {"agent", *stopped}
        )

    def replace(self, ranks: list[int]) -> None:
        """Start a new process in place of each of these ranks, whose old one is ended if it still lives."""
        for rank in ranks:
            names = [name for name in self.processes if name.split("+")[0] == str(rank)]
            self.processes[names[-1]].kill()
            self.processes[names[-1]].wait()
            (self.directory / f"replaced-{len(list(self.directory.glob('replaced-*')))}").touch()
            self.start(f"{rank}+{len(names)}", "-m", "tests.conformance.rank", str(rank), str(len(names)))

    def start(self, name: str, *arguments: str) -> None:
        with (self.directory / "output").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def output(self) -> str:
        codes = {name: process.poll() for name, process in self.processes.items()}
        last = {path.name: path.read_text("utf-8").splitlines()[-2:] for path in self.directory.glob("record-*.jsonl")}
        return f"{codes}, last records {last}: {(self.directory / 'output').read_text(errors='replace')[-4000:]}"

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def story(self) -> Story:
        records = {}
        for name in self.processes:
            rank, _, incarnation = name.partition("+")
            path = self.directory / f"record-{rank if rank == 'agent' else f'{rank}.{incarnation or 0}'}.jsonl"
            records[name] = read_record(path) if path.exists() else []
        host = "agent" if self.job["controller"] == -1 else str(self.job["controller"])
        saved = {
            int(path.name.removeprefix("saved-")): sorted(
                int(file.name.removeprefix("rank_")) for file in path.iterdir()
            )
            for path in self.directory.glob("saved-*")
        }
        exits = {name: process.returncode for name, process in self.processes.items() if name != "agent"}
        return Story(exits, records, self.log(self.processes[host].pid), saved, self.directory)

    def log(self, pid: int) -> list[LogEvent]:
        """The events of the controller's log."""
        reader = TtpLogReader()
        path = self.directory / "ttp" / f"ttp_log.log.{pid}"
        lines = path.read_text("utf-8", errors="replace").splitlines()
        assert reader.recognises(lines[:20]), f"{path} has no line of MindIO TFT"
        return [event for line in lines if (event := reader.read(line)) is not None]
