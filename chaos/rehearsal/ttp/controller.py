"""The controller of the stand-in: listens for ranks, watches their heartbeats, and drives the state machine.

States and choices are those published for MindIO TFT 7.3: INIT, NORMAL, ABNORMAL, then ENV_CLEAR, REPAIR and NORMAL
again, or DUMP, EXIT and FINAL. It knows the online repair and the end-of-life checkpoint; a lost process ends in the
latter.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.retry import Retry, RetryFailed
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.status import NORMAL, ONLINE, in_log
from chaos.rehearsal.ttp.timings import Timings
from chaos.rehearsal.ttp.wire import Link, proves

_PRE_LOCK_TRIES = 3
_PORTS = range(1024, 65536)


class Controller:
    """Watches ``world_size`` ranks. ``rank`` is 0 inside that rank's process, -1 in a process of its own."""

    def __init__(self, rank: int, world_size: int, *, run: str, secret: bytes, timings: Timings, log: TtpLog) -> None:
        self._rank = rank
        self._world_size = world_size
        self._run = run
        self._secret = secret
        self._timings = timings
        self._log = log
        self._roster = Roster(timings)
        self._replicas = Replicas(world_size)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._closing = threading.Event()
        self._finished = threading.Event()
        log.info(
            "TTP controller_state_machine.cpp:86",
            f"init controller StateMachine success, rank: {rank} state: STATE_OP_INIT",
        )

    def start(self, address: str, port: int) -> None:
        """Listen and begin to watch. Raises OSError when the port is taken, ValueError off the loopback or range."""
        if not address.startswith("127."):
            raise ValueError(f"the stand-in's controller listens on the loopback only, not on {address}")
        if port not in _PORTS:
            raise ValueError(f"port {port} is not one of {_PORTS[0]} to {_PORTS[-1]}")
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((address, port))
        self._listener.listen(self._world_size + 1)
        threading.Thread(target=self._accept, name="ttp-accept", daemon=True).start()
        threading.Thread(target=self._drive, name="ttp-controller", daemon=True).start()
        self._log.info("TTP controller.cpp:342", f"Start controller success! ip: {address}, port: {port}")

    def close(self) -> None:
        """Stop watching and listening, and tell the ranks: who has not finished yet need not look for a controller."""
        self._closing.set()
        for member in self._roster.members():
            member.link.send({"message": "closed"})
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):  # it may never have listened
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def wait_finished(self) -> None:
        """Wait until there is nothing left to watch: every rank has left, or has been told to exit."""
        self._finished.wait()

    # Receiving: one thread for a connection.

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(Link(connection),), daemon=True).start()

    def _serve(self, link: Link) -> None:
        first = link.receive()
        if first is None or first.get("message") != "register" or not proves(first, self._secret, self._run):
            self._log.warning("TTP controller.cpp:1590", "a registration without this run's secret was ignored")
            link.close()
            return
        member = self._roster.add(first["rank"], link)
        link.send({"message": "registered"})
        while (message := link.receive()) is not None:
            if message["message"] == "replicas":
                self._take_replicas(member.rank, message["ranks"])
                link.send({"message": "replicas taken"})
            else:
                self._roster.hear(member, message)
        if self._roster.all_left(self._world_size):
            self._finished.set()
        if not member.left:
            self._log.info(
                "ACC acc_tcp_link_complex_default.h:370",
                f"Link {member.rank} receive header failed, reset by peer, errno 0",
            )
            self._roster.lose_link(member)

    def _take_replicas(self, rank: int, ranks: list[int]) -> None:
        if self._replicas.report(rank, ranks):
            self._log.info("TTP controller.cpp:1905", f"rank:{rank}, report group list: {list(ranks)}")
        self._log.info("TTP controller.cpp:1831", f"controller finish handle report info from rank:{rank}")

    # The state machine: one thread.

    def _drive(self) -> None:
        self._enter("STATE_OP_NORMAL")
        while not self._closing.is_set():
            if self._abnormal():
                if not self._handle():
                    return
                self._enter("STATE_OP_NORMAL")
            self._closing.wait(self._timings.check_interval)

    def _abnormal(self) -> bool:
        """Two looks, one check interval apart, must both find an abnormal rank."""
        if not self._abnormal_members():
            return False
        self._closing.wait(self._timings.check_interval)
        return not self._closing.is_set() and bool(self._abnormal_members())

    def _abnormal_members(self, place: str = "TTP controller.cpp:2518", what: str = "status error") -> list[Member]:
        bad = [member for member in self._roster.members() if member.status != NORMAL or self._roster.lost(member)]
        for member in bad:
            self._log.warning(place, self._state_line(what, member))
        return bad

    def _state_line(self, what: str, member: Member) -> str:
        lost = self._roster.lost(member)
        return (
            f"{what}, rank:{member.rank} step: {member.step} npu_status: {in_log(member.status)} run_status: 0 "
            f"data_aval: {int(lost)} data_status: {int(member.updating)} diff_time : {self._roster.silent_ms(member)}"
        )

    def _handle(self) -> bool:
        """Answer the fault. True when training goes on, False when the job has been ended."""
        self._enter("STATE_OP_ABNORMAL")
        silent = self._roster.ask(self._alive(), "collect", self._timings.collection)
        self._log.info("TTP controller.cpp:1540", "controller collect latest status end...")
        lost = self._abnormal_members("TTP controller.cpp:2600", "detected abnormal heartbeat")
        bad = {member.rank for member in [*silent, *lost]}
        self._log.info("TTP controller.cpp:2615", f"selected error ranks: {sorted(bad)}, step: -1")
        online = self._repairable_online(bad)
        step = self._pre_lock(bad, online)
        self._log.info("TTP controller.cpp:2615", f"selected error ranks: {sorted(bad)}, step: {step}")
        dump = step > 0 and self._replicas.complete()
        if dump and online and self._repairable_online(bad):
            try:
                Retry(self._roster, self._replicas, self._timings, self._log, self._enter).run(
                    self._roster.members(), step
                )
                return True
            except RetryFailed as failed:
                self._log.warning("TTP controller.cpp:1260", f"retry failed: {failed}")
                dump = failed.dump
                bad |= {member.rank for member in self._abnormal_members()}
        if dump:
            self._enter("STATE_OP_DUMP")
            self._dump(step, {member.rank for member in self._good(bad)})
        else:
            self._log.warning("TTP controller.cpp:1570", f"nothing can be saved at step {step}, exit")
        self._exit()
        return False

    def _repairable_online(self, bad: set[int]) -> bool:
        """Whether every fault is one of the device or of communication, and every process lives."""
        members = [member for member in self._roster.members() if member.rank in bad]
        return all(member.status in ONLINE and not self._roster.lost(member) for member in members)

    def _alive(self) -> list[Member]:
        return [member for member in self._roster.members() if not self._roster.lost(member)]

    def _good(self, bad: set[int]) -> list[Member]:
        return [member for member in self._roster.members() if member.rank not in bad]

    def _pre_lock(self, bad: set[int], online: bool) -> int:
        """Bring all good ranks to the highest step that one of them has finished. -1 when they do not get there.

        A rank that dies meanwhile is added to the bad ones.
        """
        for attempt in range(1, _PRE_LOCK_TRIES + 1):
            good = self._good(bad)
            if not good and online:  # an error of communication on all ranks: none of them has lost anything
                return self._common_step()
            step = max((member.step for member in good), default=0)
            self._log.info("TTP controller.cpp:1552", f"controller:{self._rank} pre lock start.")
            missing = self._roster.ask(good, "pre-lock", self._timings.pre_lock, step=step)
            if not missing and all(member.step == step and not member.updating for member in good):
                self._log.info("TTP controller.cpp:1556", f"controller prelock step: {step} try times: {attempt}")
                self._log.info("TTP controller.cpp:1558", f"controller:{self._rank} pre lock success.")
                return step
            bad |= {member.rank for member in missing if member.link_broken}
        self._log.warning("TTP controller.cpp:1560", f"controller:{self._rank} pre lock failed.")
        return -1

    def _common_step(self) -> int:
        steps = {member.step for member in self._roster.members()}
        return steps.pop() if len(steps) == 1 else -1

    def _dump(self, step: int, good: set[int]) -> None:
        savers, without = self._replicas.savers(good)
        if without:
            self._log.warning("TTP controller.cpp:2400", f"dp:{list(without[0])} has no complete data. ret:1")
            return
        members = [self._roster.member(rank) for rank in savers]
        self._log.info(
            "TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_CKPT_SEND rank_num:{len(savers)}"
        )
        missing = self._roster.ask(members, "dump", self._timings.action, step=step)
        failed = [m.rank for m in members if m not in missing and m.replies["dump"].get("result") != 0]
        if missing or failed:
            self._log.warning("TTP controller.cpp:2450", f"dump failed, ranks: {[m.rank for m in missing] + failed}")
            return
        self._rename(step, members[-1])

    def _rename(self, step: int, member: Member) -> None:
        self._log.info("TTP controller.cpp:2457", "Start rename.")
        if self._roster.ask([member], "rename", self._timings.action, step=step) or (
            member.replies["rename"].get("result") != 0
        ):
            self._log.warning("TTP controller.cpp:2470", f"rename failed, rank:{member.rank}")
            return
        self._log.info("TTP controller.cpp:2478", f"finish rename, rank:{member.rank}")
        self._log.info("TTP controller.cpp:1162", "DumpCallback return TTP_OK")

    def _exit(self) -> None:
        """Tell every living rank to exit; the rank that hosts this controller last, since it takes it along."""
        self._enter("STATE_OP_EXIT")
        members = sorted(self._alive(), key=lambda member: member.rank == self._rank)
        for member in members:
            member.link.send({"message": "exit"})
        self._log.info(
            "TTP action_engine.cpp:538", f"send msg success, msg_type:TTP_MSG_OP_EXIT rank_num:{len(members)}"
        )
        deadline = time.monotonic() + self._timings.action
        others = [member for member in members if member.rank != self._rank]
        while time.monotonic() < deadline and not all(member.link_broken for member in others):
            self._closing.wait(self._timings.check_interval)
        self._enter("STATE_OP_FINAL")
        self._finished.set()

    def _enter(self, state: str) -> None:
        self._log.info("TTP controller_state_machine.cpp:115", f"nextState: {state}")
