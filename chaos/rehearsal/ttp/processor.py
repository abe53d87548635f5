"""The processor of the stand-in: the part in every rank that reports to the controller and calls the handlers."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from chaos.agent.leaving import leave, say
from chaos.base.growth import in_words
from chaos.rehearsal.ttp.connect import register
from chaos.rehearsal.ttp.log import TtpLog
from chaos.rehearsal.ttp.pause import PAUSED, PausePoint
from chaos.rehearsal.ttp.status import NORMAL, PREREPAIR_FINISH, UCE, UNKNOWN, in_log, run_status
from chaos.rehearsal.ttp.timings import Timings
from chaos.rehearsal.ttp.wire import Link, Message

_RAISED = 4
"""The vendor's SDK's code for a clean handler that raised (RET_EXCEPTION)."""

_LOW_LEVEL = 2
"""The answer of clean where the memory was given back without being lost."""

_NAMES = {"stop": "device stop", "clean": "device clean", "rebuild": "pt comm operation"}

_UCE_HIGHLEVEL = 1

Handler = tuple[Callable[..., Any], Any]

RETRY, EXIT = 0, 1
"""A rank's next action."""

_ORDERED = "the controller has ordered it"


class Processor:
    """One rank's side. ``handlers`` maps a name (save_ckpt, rename, exit, …) to a function and its context.

    ``cleans_before_dump``: a rank that is to save stops and cleans its device first, unless a repair has done so.
    ``for_pytorch``: the errors have the texts of torch_npu, the training waits until the device is clean and then for
    the rest of a repair, and an exit ends the process a while later with code 2.
    """

    def __init__(
        self,
        rank: int,
        *,
        run: str,
        secret: bytes,
        timings: Timings,
        log: TtpLog,
        handlers: dict[str, Handler],
        arf: bool = False,
        cleans_before_dump: Callable[[], bool] = lambda: False,
        for_pytorch: bool = False,
    ) -> None:
        self.rank = rank
        self._cleans_before_dump = cleans_before_dump
        self._cleaned = False
        self._for_pytorch = for_pytorch
        self._clean = threading.Event()
        self._saving = threading.Lock()
        self._reporting = threading.Lock()
        self._run = run
        self._secret = secret
        self._timings = timings
        self._log = log
        self._handlers = handlers
        self._step_arguments: Any = None
        self._link: Link | None = None
        self._address: tuple[str, int] = ("", 0)
        self._closing = threading.Event()
        self._state = threading.Condition()
        self._step = 0
        self._updating = False
        self._status = NORMAL
        self._lock_step: int | None = None
        self._replicas_taken = threading.Event()
        self._controller_closed = False
        self._stopping = False
        self._parked = threading.Event()
        self._go_on = threading.Event()
        self._action = RETRY
        self._waits = False
        self.reboot = False
        self.repair_step = 0
        self.repair_type = "unknow"
        self.pause_point = PausePoint(rank, log)
        log.info("TTP processor.cpp:195", f"processor:{rank} initialize success, retry:1, arf:{int(arf)}, zit:0")

    def start(self, address: str, port: int) -> None:
        """Connect and register. Raises ConnectionError when no controller of this run answers in time."""
        self._address = (address, port)
        self._link = self._register(self._timings.connect)
        threading.Thread(target=self._receive, name="ttp-processor", daemon=True).start()
        threading.Thread(target=self._beat, name="ttp-heartbeat", daemon=True).start()

    def set_step_arguments(self, arguments: Any) -> None:
        """Keep the handlers' argument ``args``."""
        self._step_arguments = arguments

    def report_replicas(self, ranks: list[int]) -> None:
        """Report to the controller the ranks with the same state as this one; waits until the controller has taken it.

        After the controller's host has trained to its end the report is useless, so this does not wait. Raises
        ConnectionError when it is not taken in time.
        """
        self._send({"message": "replicas", "ranks": ranks})
        if not self._replicas_taken.wait(self._timings.action):
            address, port = self._address
            raise ConnectionError(
                f"rank {self.rank}: the controller at {address}:{port} has not answered to the report of replica group "
                f"{ranks} for {in_words(self._timings.action)}; see the log of the process that hosts it"
            )

    def begin_update(self) -> None:
        """Begin the optimizer's update. Blocks while the controller has locked the step before.

        Raises RuntimeError (ForceStopError) when the rank is ordered to stop meanwhile.
        """
        with self._state:
            self._pass_lock()
            self._updating = True

    def begin_copy(self) -> None:
        """Begin the optimizer's copy of its state within the device. Blocks and raises as an update does.

        The copy changes nothing: the state stays that of the step before, and no wait for its end is needed.
        """
        with self._state:
            self._pass_lock()

    def _pass_lock(self) -> None:
        self._state.wait_for(lambda: self._stopping or self._lock_step is None or self._step < self._lock_step)
        if self._stopping:
            name = "FORCE STOP." if self._for_pytorch else "ForceStopError"
            raise RuntimeError(f"{name} error occurs when execute, the optimizer update is locked.")

    def end_update(self, step: int) -> None:
        """Note that the optimizer state is that of ``step``, and report it where the timings want that."""
        with self._state:
            self._step = step
            self._updating = False
            self._state.notify_all()
        if self._timings.reports_updates:
            self._tell("heartbeat")

    def report_error(self, status: int) -> None:
        """Report this rank's state. An unknown error blocks, since it ends in a dump or an exit of this process."""
        self._log.info(
            "TTP processor.cpp:1927",
            f"rank:{self.rank} report status: {in_log(status)}, run_status: {run_status(status)}",
        )
        with self._state:
            self._status = status
        self._tell("heartbeat")
        if status == UNKNOWN:
            if self._controller_closed:
                self._exit("the controller had closed before it reported an error, so nobody is left who could answer")
            threading.Event().wait()
        self._parked.set()

    def wait_clean(self) -> int:
        """Wait until the device of this rank is stopped and clean: RETRY. An exit ends this process meanwhile."""
        self._log.info("TTP processor.cpp:1863", f"rank:{self.rank} start wait next action..")
        self._clean.wait()
        self._clean.clear()
        return RETRY

    def wait_next_action(self) -> int:
        """Wait until all ranks go on: RETRY. An exit ends this process instead, or is returned if no handler does so.

        In the new process of a lost rank the wait also ends when the groups have been rebuilt.
        """
        self._log.info("TTP processor.cpp:1863", f"rank:{self.rank} start wait next action..")
        self._waits = True
        self._go_on.wait()
        self._go_on.clear()
        self._waits = False
        self._log.info("TTP processor.cpp:1878", f"rank:{self.rank} end wait next action.. ret: 0,waitRet 0")
        return self._action

    def leave(self) -> None:
        """Stop reporting: training is over."""
        self._tell("leave")
        self._closing.set()
        if self._link is not None:
            self._link.close()

    # Reporting.

    def _tell(self, message: str, **fields: Any) -> None:
        """Send a message with this rank's state, which never arrives after a newer state of another thread."""
        with self._reporting:
            with self._state:
                state = {"step": self._step, "updating": self._updating, "status": self._status}
            self._send({"message": message, **state, **fields})

    def _send(self, message: Message) -> None:
        if self._link is not None:
            self._link.send(message)

    def _beat(self) -> None:
        while not self._closing.wait(self._timings.heartbeat):
            self._tell("heartbeat")

    # Connecting.

    def _register(self, seconds: float) -> Link:
        link, self.reboot = register(
            self.rank,
            self._address,
            run=self._run,
            secret=self._secret,
            seconds=seconds,
            answer_seconds=self._timings.pre_lock,
            wait=self._closing.wait,
        )
        if self.reboot:
            self._log.info("PYH ttp_decorator.py:1148", f"[TFT] node reboot, rank:{self.rank} repair_id:0 ")
        to = "{}:{}".format(*self._address)
        self._log.info("TTP processor.cpp:1595", f"rank:{self.rank} register to: {to} success, after 0 times")
        return link

    # Receiving: one thread.

    def _receive(self) -> None:
        while not self._closing.is_set() and self._link is not None:
            message = self._link.receive()
            if message is not None:
                self._obey(message)
            elif self._controller_closed:
                return
            elif not self._closing.is_set():
                self._find_controller_again()

    def _find_controller_again(self) -> None:
        """Look for the vanished controller for a while, then exit, since no order to exit would come any more."""
        self._log.warning("TTP processor.cpp:1800", f"rank:{self.rank} lost the controller")
        try:
            self._link = self._register(self._timings.reconnect)
        except ConnectionError as error:
            self._log.warning("TTP processor.cpp:1810", f"rank:{self.rank} found no controller, exit")
            self._exit(f"it has lost the controller, and {error}")

    def _obey(self, message: Message) -> None:
        kind = message["message"]
        if kind == "replicas taken":
            self._replicas_taken.set()
        elif kind == "collect":
            # A rank that only pauses, with no replica to repair from, reports no updates: its steps are known here.
            passed = self.pause_point.hold(self._timings.action) if message.get("hold") else 0
            self._reply(kind, step=max(self._step, passed))
        elif kind == "pre-lock":
            # Waits for this rank's own update to end, so it must not keep the receiver from an exit.
            threading.Thread(target=self._pre_lock, args=(message["step"],), daemon=True).start()
        elif kind == "dump":
            self._saving.acquire()  # here, or a following exit could be faster than the thread
            threading.Thread(target=self._dump, args=(message["step"],), daemon=True).start()
        elif kind in ("stop", "clean", "rebuild", "repair", "rollback"):
            # In a thread of its own: a handler may wait for other ranks, and an exit must still be heard.
            threading.Thread(target=self._take_part, args=(kind, message), daemon=True).start()
        elif kind == "pause":
            threading.Thread(target=self._pause, args=(message["step"],), daemon=True).start()
        elif kind == "continue":
            self._continue()
        elif kind == "go on":
            self._resume(message["step"])
        elif kind == "rename":
            self._reply(kind, result=self._call("rename", message["step"]))
        elif kind == "exit":
            with self._saving:  # a save is finished first, however long it takes
                self._exit(_ORDERED)
        elif kind == "closed":
            # The rank that hosts the controller has trained to its end, so this one is about to.
            self._controller_closed = True
            self._replicas_taken.set()
            if self._status == UNKNOWN:
                self._exit("the controller has closed without an answer to the error that it reported")

    def _reply(self, kind: str, **fields: Any) -> None:
        self._tell("reply", to=kind, **fields)

    def _pre_lock(self, step: int) -> None:
        self._log.info("TTP processor.cpp:1213", f"rank:{self.rank} receive prelock message")
        with self._state:
            self._lock_step = step
            self._state.notify_all()
            self._state.wait_for(lambda: self._step >= step and not self._updating, self._timings.pre_lock)
        self._log.info("TTP processor.cpp:1283", f"rank:{self.rank} reply prelock msg success")
        self._reply("pre-lock")

    def _dump(self, step: int) -> None:
        self._log.info("TTP processor.cpp:561", f"rank:{self.rank} receive dump message")
        try:
            result = self._save(step) if self._ready_to_dump() else 1
        finally:
            self._saving.release()
        self._log.info("TTP processor.cpp:610", f"rank:{self.rank} reply dump result success, dump ret:{result}")
        self._reply("dump", result=result)

    def _save(self, step: int) -> int:
        self._log.info(
            "PYH ttp_decorator.py:505",
            f"rank:{self.rank} set dump config step:{step}, repairId:1, optimidxs:[0], ranks:[[{self.rank}]]",
        )
        self._log.info("PYH ttp_decorator.py:425", f"rank:{self.rank} begin to execute save checkpoint")
        return self._call("save_ckpt", step, [{"type": 0, "ranks": [self.rank]}], self._step_arguments)

    def _ready_to_dump(self) -> bool:
        """Stop and clean the device before a save, where required. Returns by clean's answer alone."""
        if not self._cleans_before_dump() or self._cleaned:
            return True
        if (stopped := self._stop("dump")) != 0:
            self._log.error("TTP processor.cpp:625", f"rank:{self.rank} device stop failed before dump, ret: {stopped}")
        cleaned = self._call("clean", self._status == UCE, self._step_arguments)
        if cleaned != 0:
            self._log.error("TTP processor.cpp:632", f"rank:{self.rank} clean before dump failed, ret: {cleaned}")
        return cleaned == 0

    def _pause(self, step: int) -> None:
        self._log.info("TTP processor.cpp:1077", f"rank:{self.rank} receive pause message")
        result = self.pause_point.ask(step, self._timings.action)
        if result == PAUSED and "stream_sync" in self._handlers:
            result = self._call("stream_sync")
        self._log.info("TTP processor.cpp:1104", f"rank:{self.rank} reply device pause result success")
        self._reply("pause", result=result)

    def _continue(self) -> None:
        self._log.info("TTP processor.cpp:1114", f"rank:{self.rank} receive continue message")
        self.pause_point.release()
        self._log.info("TTP processor.cpp:1132", f"rank:{self.rank} reply device continue result success")
        self._reply("continue")

    def _take_part(self, kind: str, message: Message) -> None:
        """Do this rank's part of a repair and reply."""
        what = _NAMES.get(kind, kind)
        self._log.info("TTP processor.cpp:747", f"rank:{self.rank} receive {what} message")
        if kind == "stop":
            result = self._stop(message.get("strategy", "retry"))
        elif kind == "clean":
            result = self._call("clean", self._status == UCE, self._step_arguments)
            self._cleaned = result == 0
            if result in (0, _LOW_LEVEL):
                self._clean.set()
        elif kind == "rebuild":
            result = self._rebuild(message["lost"])
        elif kind == "repair":
            info = {"type": [0], **message["actions"][str(self.rank)]}
            rebuild = info["repair_type"] == _UCE_HIGHLEVEL
            result = self._call("repair", message["step"], rebuild, info["dst"], info, self._step_arguments)
        else:
            result = (
                self._call("rollback", message["step"], self._step_arguments) if "rollback" in self._handlers else 0
            )
        self._log.info("TTP processor.cpp:771", f"rank:{self.rank} reply {what} result success, ret:{result}")
        self._reply(kind, result=result)
        if kind == "rebuild" and self.reboot and self._status != PREREPAIR_FINISH:
            self._log.info("TTP processor.cpp:1508", f"rank:{self.rank} sem up training thread after rebuild group")
            self._go_on.set()

    def _rebuild(self, lost: list[int]) -> int:
        """Rebuild the groups.

        A new process has no handler yet: it joins them when it forms its groups anyway.
        """
        self._log.info("PYH ttp_decorator.py:698", f"[ARF] rebuild group, rank:{self.rank}, repairId:1")
        if "rebuild_group" not in self._handlers:
            return 0
        return self._call("rebuild_group", lost, self._step_arguments)

    def _exit(self, why: str) -> None:
        """End this process: by its handler; before there is one, through the waiter for the next action.

        ``why`` goes to the rank's own log as well: the handler's text is the same whatever the reason.
        """
        text = f"mindio_ttp{',' if why == _ORDERED else ':'} rank {self.rank} exits: {why}"
        if self._for_pytorch:
            self._log.info("PYH ttp_decorator.py:470", f"rank:{self.rank} exits in {self._timings.leaving:g} s")
            time.sleep(self._timings.leaving)
            leave(2, text)
        if "exit" in self._handlers:
            say(text)
            self._call("exit")
        elif self._waits:
            say(text)
            self._action = EXIT
            self._go_on.set()
        else:
            self._log.warning("TTP processor.cpp:1350", f"rank:{self.rank} has no exit handler, exit")
            leave(1, f"{text}; it has no exit handler yet")

    def _stop(self, strategy: str) -> int:
        self.repair_type = strategy
        self.pause_point.release()  # a paused thread has to notice the stop
        with self._state:
            self._stopping = True
            self._state.notify_all()
        result = self._call("stop", self._step_arguments)
        # The device has stopped; the step stops when training has noticed and reported, and the reply waits for that.
        return result if self._parked.wait(self._timings.action) else 1

    def _resume(self, step: int) -> None:
        with self._state:
            self._step, self._status, self._updating = step, NORMAL, False
            self._lock_step, self._stopping = None, False
            self.repair_step = step
            self.reboot = False
        self._parked.clear()
        self._cleaned = False
        self._log.info("TTP processor.cpp:1182", f"rank:{self.rank} reply notify normal result success")
        self._reply("go on")
        self._go_on.set()

    def _call(self, name: str, *arguments: Any) -> int:
        """Call a handler. As in the vendor's SDK an exception in it is failure, and only clean's own answer counts.

        An exception in clean is worse than clean's answer 1, after which a new process may still help.
        """
        function, context = self._handlers[name]
        try:
            result = function() if name == "stream_sync" else function(*arguments, context)
        except Exception as error:  # any error of a handler is a failed action, reported in the log
            self._log.warning("PYH ttp_decorator.py:430", f"rank:{self.rank} {name} failed: {error}")
            return _RAISED if name == "clean" else 1
        return int(result or 0) if name == "clean" else 0
