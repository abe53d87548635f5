"""The controller of the stand-in: listens for ranks, watches their heartbeats, and drives the state machine.

States and choices are those published for MindIO TFT 7.3: INIT, NORMAL, ABNORMAL, then ENV_CLEAR, REPAIR and NORMAL
again, or DUMP, EXIT and FINAL. It knows the online repair, the replacement of lost processes, and the end-of-life
checkpoint. Where an agent of the cluster has registered, the agent chooses.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Collection

from chaos.agent.unproven import Unproven, callers
from chaos.rehearsal.device.addresses import why_open
from chaos.rehearsal.ttp.agent_dialogue import DUMP, STOP, AgentDialogue
from chaos.rehearsal.ttp.choice import Choice
from chaos.rehearsal.ttp.dump import Dump
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.pause import Pause, Pausing
from chaos.rehearsal.ttp.prelock import pre_lock
from chaos.rehearsal.ttp.recover import OrderedToEnd, Recover, RecoverFailed
from chaos.rehearsal.ttp.replicas import Replicas
from chaos.rehearsal.ttp.retry import Retry, RetryFailed, losing
from chaos.rehearsal.ttp.roster import Member, Roster
from chaos.rehearsal.ttp.status import FAULT_PROCESS, NORMAL, ONLINE, fault_of, in_log, run_status
from chaos.rehearsal.ttp.strategies import Possible
from chaos.rehearsal.ttp.timings import Timings
from chaos.rehearsal.ttp.trust import Trust, UnprovenCaller
from chaos.rehearsal.ttp.wire import Link

_UNPROVEN = 256
"""Callers that may be silent at a time. Of a larger job all ranks may call at once, and a second process of each."""
_PORTS = range(1024, 65536)
_EVENTS = {STOP: 5, DUMP: 17}
"""The numbers of these orders in the vendor's log."""


class Controller:
    """Watches ``world_size`` ranks. ``rank`` is 0 inside that rank's process, -1 in a process of its own.

    ``arf``: lost processes may be replaced, when ``agent`` has registered to start them.
    """

    def __init__(
        self,
        rank: int,
        world_size: int,
        *,
        run: str,
        secret: bytes,
        timings: Timings,
        log: TtpLog,
        arf: bool = False,
        agent: AgentDialogue | None = None,
    ) -> None:
        self._rank = rank
        self._world_size = world_size
        self._trust = Trust(run, secret)
        self._unproven = Unproven(most=max(_UNPROVEN, 2 * world_size), seconds=timings.pre_lock)
        self._timings = timings
        self._log = log
        self._roster = Roster(timings)
        self._replicas = Replicas(world_size)
        self._arf = arf
        self._choice = Choice(agent or AgentDialogue(), timings, log)
        self._faults: dict[int, int] = {}
        self._step = 0
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._closing = threading.Event()
        self._exiting = False
        self._started = False
        self.pausing = Pausing(
            self._roster,
            timings,
            log,
            enter=self._enter,
            abnormal=self._abnormal,
            closing=self._closing,
            paused=self._choice.paused,
            ended=self._choice.pause_ended,
        )
        log.info(
            "TTP controller_state_machine.cpp:86",
            f"init controller StateMachine success, rank: {rank} state: STATE_OP_INIT",
        )

    def start(self, address: str, port: int, own: str | None = None) -> None:
        """Listen and begin to watch.

        ``own`` is this node's address on the private network of a run with several nodes. Raises OSError when the port
        is taken, ValueError off the loopback or range.
        """
        if not _is_loopback(address) and address != own:
            raise ValueError(f"the stand-in's controller listens on the loopback only, not on {address}")
        if (why := why_open(address)) is not None:
            raise ValueError(f"the stand-in's controller listens on the loopback or a private network only: {why}")
        if port not in _PORTS:
            raise ValueError(f"port {port} is not one of {_PORTS[0]} to {_PORTS[-1]}")
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((address, port))
        self._listener.listen(self._world_size + 1)
        self._started = True
        self._choice.listen(self._roster.knows)
        threading.Thread(target=self._accept, name="ttp-accept", daemon=True).start()
        threading.Thread(target=self._drive, name="ttp-controller", daemon=True).start()
        self._log.info("TTP controller.cpp:342", f"Start controller success! ip: {address}, port: {port}")

    @property
    def started(self) -> bool:
        """Whether it listens, or has."""
        return self._started

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._closing.is_set()

    @property
    def connected(self) -> bool:
        """Whether any rank is connected, as long as the controller has not been closed."""
        return not self._closing.is_set() and any(m.link_broken is None for m in self._roster.members())

    def close(self) -> None:
        """Stop watching and listening, and notify the ranks: an unfinished rank need not look for a controller."""
        self._closing.set()
        self._choice.close()
        for member in self._roster.members():
            member.link.send({"message": "closed"})
        # Closing alone would not wake the thread that accepts.
        with contextlib.suppress(OSError):  # it may never have listened
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # Receiving: one thread for a connection.

    def _accept(self) -> None:
        for connection in callers(self._listener, self._unproven, self._closing):
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        link = Link(connection)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rank = self._trust.challenge(link)
        except (UnprovenCaller, OSError) as unproven:
            self._log.warning("TTP controller.cpp:1590", f"a registration was ignored: {unproven}")
            link.close()
            return
        finally:
            self._unproven.leave(connection)
        # A process that comes before its predecessor's death was noticed is an ordinary rank, as with the
        # vendor's: nobody repairs it.
        reboot = self._arf and rank in self._faults
        member = self._roster.add(rank, link, reboot=reboot)
        link.send({"message": "registered", "reboot": reboot})
        if self._exiting:  # a new process of a lost rank that has come too late: nothing else would end it
            link.send({"message": "exit"})
        while (message := link.receive()) is not None:
            if message["message"] == "replicas":
                self._take_replicas(member.rank, message["ranks"])
                link.send({"message": "replicas taken"})
            else:
                self._roster.hear(member, message)
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
        self._train()
        while not self._closing.is_set():
            paused = self.pausing.run() if self.pausing.requested else None
            if paused is Pause.CONTINUED:
                self._train()
            ordered = self._choice.ordered()
            if ordered is not None:
                name, self._faults = ordered
                self._log.warning("TTP controller.cpp:687", f"NormalCallback found mindx event:{_EVENTS[name]}, ret:1")
            if paused is Pause.EXPIRED or ordered is not None or self._abnormal():
                strategy = self._handle(only_dump=paused is Pause.EXPIRED, ordered=ordered is not None and name == DUMP)
                if strategy is None:
                    return
                self._faults = {}
                self._train()
                self._closing.wait(self._timings.check_interval)
                self._choice.succeeded(strategy)
            self._closing.wait(self._timings.check_interval)

    def _train(self) -> None:
        """Enter the state of training, in which an earlier order is over."""
        self._choice.training()
        self._enter("STATE_OP_NORMAL")

    def _abnormal(self) -> bool:
        """Return whether two looks, one check interval apart, both find an abnormal rank."""
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
            f"{what}, rank:{member.rank} step: {member.step} npu_status: {in_log(member.status)} "
            f"run_status: {run_status(member.status)} data_aval: {int(lost)} data_status: {int(member.updating)} "
            f"diff_time : {self._roster.silent_ms(member)}"
        )

    def _handle(self, *, only_dump: bool = False, ordered: bool = False) -> str | None:
        """Handle the fault. Returns the strategy by which training goes on, None when the job has been ended.

        ``only_dump``: nothing is repaired, as after a pause that nobody has ended in time. ``ordered``: the agent has
        ordered to save and end the job, whether there is a fault or not, and is not asked again.
        """
        self._enter("STATE_OP_ABNORMAL")
        silent = self._roster.ask(self._members_to_ask(), "collect", self._timings.collection)
        self._log.info("TTP controller.cpp:1540", "controller collect latest status end...")
        lost = self._abnormal_members("TTP controller.cpp:2600", "detected abnormal heartbeat")
        bad = {member.rank for member in [*silent, *lost]} | self._faults.keys()
        self._log.info("TTP controller.cpp:2615", f"selected error ranks: {sorted(bad)}, step: -1")
        self._step = self._pre_lock(bad, self._repairable_online(bad))
        self._log.info("TTP controller.cpp:2615", f"selected error ranks: {sorted(bad)}, step: {self._step}")
        self._note_faults(bad)
        strategy = self._first_strategy(only_dump, ordered)
        tried = ""
        while strategy in ("retry", "recover"):
            try:
                failure = self._retry() if strategy == "retry" else self._recover(stopped=tried == "retry")
            except OrderedToEnd as order:
                strategy = order.strategy
                break
            tried = strategy
            if failure is None:
                return strategy
            possible, text = failure
            strategy = self._choice.next(strategy, text, possible, self._faults, self._possible)
        good = {member.rank for member in self._good(set(self._faults))}
        if strategy == "dump":
            self._enter("STATE_OP_DUMP")
            self._choice.dumped(self._dump(good), faults=self._faults if ordered else None)
        else:
            self._log.warning("TTP controller.cpp:1570", f"nothing can be saved at step {self._step}, exit")
            for group in self._replicas.savers(good)[1]:
                self._log.warning("TTP controller.cpp:2400", f"dp:{list(group)} has no complete data. ret:1")
        self._exit()
        return None

    def _dump(self, good: set[int]) -> bool:
        """Have the state saved.

        The cluster may order it where that is impossible, for example before the first step.
        """
        if not self._possible(recover=False).dump:
            self._log.error("TTP controller.cpp:1142", "do not support dump!")
            return False
        return Dump(self._roster, self._replicas, self._timings, self._log).run(self._step, good)

    def _first_strategy(self, only_dump: bool, ordered: bool) -> str:
        if only_dump:
            return self._possible().default()
        if ordered and self._choice.agent:
            self._log.warning("TTP controller.cpp:979", "Mindx Cluster notify to do dump, try to do dump...")
            return "dump"
        return self._choose()

    def _choose(self) -> str:
        return self._choice.first(self._faults, lambda: self._possible(retry=True))

    def _possible(self, *, retry: bool = False, dump: bool = True, recover: bool = True) -> Possible:
        """Return the strategies that the faults allow, among the requested ones."""
        bad = set(self._faults)
        known = self._step > 0 and self._replicas.complete()
        everywhere = known and self._complete_without(bad)
        # As by the vendor's SDK for MindSpore a repair without a whole replica is not offered: it would fail at once.
        copied = known and self._complete_without(losing(self._roster.members()))
        return Possible(
            dump=dump and everywhere,
            retry=retry and copied and self._repairable_online(bad),
            recover=recover and everywhere and self._arf and self._choice.agent,
        )

    def _complete_without(self, bad: Collection[int]) -> bool:
        """Return whether every replica group has a rank that is not one of these."""
        return not self._replicas.savers({member.rank for member in self._good(set(bad))})[1]

    def _retry(self) -> tuple[Possible, str] | None:
        try:
            Retry(self._roster, self._replicas, self._timings, self._log, self._enter).run(
                self._roster.members(), self._step
            )
        except RetryFailed as failed:
            broken = {member.rank for member in self._roster.members() if member.link_broken is not None}
            self._note_faults(broken | {member.rank for member in self._abnormal_members()})
            self._faults.update(dict.fromkeys(failed.unclean, FAULT_PROCESS))
            return self._possible(dump=False, recover=bool(failed.unclean)), str(failed)
        return None

    def _recover(self, *, stopped: bool) -> tuple[Possible, str] | None:
        recover = Recover(
            self._roster,
            self._replicas,
            self._timings,
            self._log,
            enter=self._enter,
            closing=self._closing,
            ordered=self._choice.ordered_to_end,
        )
        try:
            recover.run(set(self._faults), self._step, stopped=stopped)
        except RecoverFailed as failed:
            self._note_faults(set(failed.lost))
            return self._possible(recover=False), str(failed)
        return None

    def _note_faults(self, ranks: set[int]) -> None:
        """Record the failed ranks and their failures; the agent gets them, and they identify a rank's new process."""
        for rank in ranks - self._faults.keys():
            member = self._roster.member(rank)
            self._faults[rank] = fault_of(member.status, self._roster.lost(member) or member.link_broken is not None)

    def _repairable_online(self, bad: set[int]) -> bool:
        """Return whether there are faults, each is one of the device or of communication, and every process lives."""
        members = [member for member in self._roster.members() if member.rank in bad]
        return bool(members) and all(member.status in ONLINE and not self._roster.lost(member) for member in members)

    def _members_to_ask(self) -> list[Member]:
        """Return the ranks that are asked for their step.

        Where heartbeats alone decide, a silent rank that is still connected is among them.
        """
        if self._timings.link_lost_after is not None:
            return self._alive()
        return [member for member in self._roster.members() if member.link_broken is None]

    def _alive(self) -> list[Member]:
        return [member for member in self._roster.members() if not self._roster.lost(member)]

    def _good(self, bad: set[int]) -> list[Member]:
        return [member for member in self._roster.members() if member.rank not in bad]

    def _pre_lock(self, bad: set[int], online: bool) -> int:
        return pre_lock(self._roster, self._timings, self._log, self._rank, bad, online)

    def _exit(self) -> None:
        """Order every living rank to exit; the rank that hosts this controller last, since it takes it along."""
        self._enter("STATE_OP_EXIT")
        self._exiting = True
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

    def _enter(self, state: str) -> None:
        self._log.info("TTP controller_state_machine.cpp:115", f"nextState: {state}")


def _is_loopback(address: str) -> bool:
    """Return whether the address is a number, not a name, of this host alone: others decide what a name resolves to."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
