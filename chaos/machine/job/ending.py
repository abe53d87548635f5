"""Ending processes until none is left."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass

from chaos.base.clock import Clock
from chaos.machine.job.processes import FoundProcess
from chaos.machine.linux.process import ProcessIdentity, RefusedProcess, send_signal, wait_ended

_CONFIRM_SECONDS = 0.05
"""Seconds between two searches that both find nothing. A process amid execve(2) shows no environment."""


@dataclass(frozen=True)
class Ended:
    """The processes that have ended, and those that could not be ended, each with the reason."""

    ended: tuple[FoundProcess, ...]
    remaining: tuple[tuple[FoundProcess, str], ...]

    @property
    def complete(self) -> bool:
        return not self.remaining


def end_processes(
    find: Callable[[], list[FoundProcess]], *, grace_seconds: float, kill_seconds: float = 10.0, clock: Clock
) -> Ended:
    """End every process that ``find`` returns, and repeat until it returns none.

    SIGTERM comes first, unless ``grace_seconds`` is 0. Processes that live after the grace get SIGKILL, which ends
    stopped processes too. A process that survives SIGKILL for ``kill_seconds`` (it hangs in the kernel) is left and
    reported, as is a process that may not be signalled.
    """
    ending = _Ending(find, clock)
    if grace_seconds > 0:
        ending.ask(grace_seconds)
    ending.kill(kill_seconds)
    return ending.result()


class _Ending:
    def __init__(self, find: Callable[[], list[FoundProcess]], clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._signalled: dict[ProcessIdentity, FoundProcess] = {}
        self._refused: dict[ProcessIdentity, str] = {}

    def ask(self, grace_seconds: float) -> None:
        deadline = self._deadline(grace_seconds)
        while self._left(deadline) > 0 and (targets := self._targets()):
            for target in targets:
                if target.identity not in self._signalled:
                    self._send(target, signal.SIGTERM)
            self._wait(targets, self._left(deadline))

    def kill(self, kill_seconds: float) -> None:
        deadline = self._deadline(kill_seconds)
        tried = False
        looks_without = 0
        while looks_without < 2:
            targets = self._targets()
            if not targets:
                looks_without += 1
                if looks_without < 2:
                    self._clock.sleep(_CONFIRM_SECONDS)
                continue
            looks_without = 0
            # On a busy host the time may be over before any process was signalled.
            if tried and self._left(deadline) <= 0:
                break
            tried = True
            for target in targets:
                self._send(target, signal.SIGKILL)
            # The search is repeated every second: a child may have been started before its parent ended.
            self._wait(targets, min(1.0, self._left(deadline)))

    def result(self) -> Ended:
        remaining = {process.identity: process for process in self._find()}
        ended = tuple(process for identity, process in self._signalled.items() if identity not in remaining)
        why = "still there after SIGKILL"
        return Ended(ended, tuple((process, self._refused.get(key, why)) for key, process in remaining.items()))

    def _targets(self) -> list[FoundProcess]:
        return [process for process in self._find() if process.identity not in self._refused]

    def _send(self, target: FoundProcess, signum: signal.Signals) -> None:
        try:
            send_signal(target.identity, signum)
        except LookupError:
            return  # it has ended by itself
        except (PermissionError, RefusedProcess) as error:
            self._refused[target.identity] = f"{signum.name} was refused: {error}"
            return
        self._signalled[target.identity] = target

    def _wait(self, targets: list[FoundProcess], seconds: float) -> None:
        awaited = [target.identity for target in targets if target.identity not in self._refused]
        wait_ended(awaited, seconds, self._clock)

    def _deadline(self, seconds: float) -> int:
        return self._clock.mono() + int(seconds * 1e9)

    def _left(self, deadline: int) -> float:
        return max(0.0, (deadline - self._clock.mono()) / 1e9)
