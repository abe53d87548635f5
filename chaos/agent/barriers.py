"""Named barriers: the points of a step at which a fault can be placed exactly."""

from __future__ import annotations

from typing import Any, Callable

from chaos.agent.acts import Slowness, perform
from chaos.agent.channel import Channel
from chaos.agent.record import Record

PHASES = (
    "step.begin",
    "forward",
    "allreduce.enter",
    "optimizer.update",
    "step.end",
    "checkpoint.begin",
    "checkpoint.write",
    "checkpoint.end",
    "checkpoint.load",
)


class Barriers:
    """The barriers of one rank, which wait at an armed (step, phase) until the harness has made the fault or goes on.

    The harness may answer with an error, which is raised here as the device would raise it: a RuntimeError whose text
    MindSpore classifies.

    Or with an action of the device, such as ``link.down``; ``actions`` holds the device layer's functions by such
    names.

    Or with an act (:mod:`chaos.agent.acts`): a way in which the rank ends, hangs or fails by itself.

    Or with an alteration. The code that computes the value takes the alteration by :meth:`take_alterations`;
    ``on_weight`` alters a weight at once, and gets the phase as an argument. Or with slowness, which is kept in
    ``slow``.

    ``armed`` lists the points, each with its fault; the step of a point at a handler is None.

    An armed point is popped when it is reached, so a step that is replayed after a rollback passes freely. It is armed
    again where the harness answers ``later``. Without an armed fault a barrier costs one look-up. ``step`` is the step
    that the rank is in, counted from 1 over the whole job. ``parameters`` are the network's, by name, once training has
    begun. ``on_raise`` is called before an error is raised, with the error and the ``phase``; it makes the error's
    cause true in a rehearsal, and returns a record of its changes. Where the record has ``answered``, the device
    reports the error in its answers to queries, and nothing is raised. Where it has ``raised_as``, the device has that
    text for the error.
    """

    def __init__(self, record: Record, channel: Channel | None, armed: list[dict[str, Any]]) -> None:
        self.step = 0
        self.actions: dict[str, Callable[[], None]] = {}
        self._record = record
        self._channel = channel
        self._armed: dict[tuple[int | None, str], list[str]] = {}
        self._phases: set[str] = set()
        self.parameters: list[tuple[str, Any]] = []
        self.on_raise: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.on_weight: Callable[[dict[str, Any], str], None] | None = None
        self.slow: list[Slowness] = []
        self._alterations: list[dict[str, Any]] = []
        for point in armed:
            self._armed.setdefault((point["step"], point["phase"]), []).append(point["fault"])
            self._phases.add(point["phase"])

    def reach(self, phase: str) -> None:
        """Pass the barrier of this phase in the current step; block while a fault is armed here."""
        if phase in self._phases:
            self._hold(phase)

    def enter(self, handler: str, point: str = "") -> None:
        """Pass the barrier at the entry of an SDK handler, or at a point in the handler, in any step.

        Blocks while a fault is armed here.
        """
        phase = f"handler.{handler}/{point}" if point else f"handler.{handler}"
        if phase in self._phases:
            self._hold(phase, at_any_step=True)

    def armed_phases(self) -> set[str]:
        """Return the phases at which a fault is armed for this rank."""
        return set(self._phases)

    def take_alterations(self) -> list[dict[str, Any]]:
        """Return the gradients' alterations that the harness ordered at the last barrier, each with its fault's id."""
        return self.take_alterations_of("gradients")

    def take_alterations_of(self, what: str) -> list[dict[str, Any]]:
        """Take the alterations of any other value in the same way."""
        if not self._alterations:
            return []
        taken = [order for order in self._alterations if order.get("what", "gradients") == what]
        self._alterations = [order for order in self._alterations if order not in taken]
        return taken

    def _hold(self, phase: str, *, at_any_step: bool = False) -> None:
        point = (None if at_any_step else self.step, phase)
        for fault in self._armed.pop(point, ()):
            self._record.write("barrier.reached", fault=fault, step=self.step, phase=phase)
            answer = None
            if self._channel is not None:
                answer = self._channel.ask({"message": "barrier", "fault": fault, "step": self.step, "phase": phase})
            if answer is not None and answer.get("message") == "raise":
                text = str(answer["text"])
                effects = self.on_raise({**answer, "phase": phase}) if self.on_raise is not None else {}
                self._record.write("fault.raised", fault=fault, step=self.step, phase=phase, text=text, **effects)
                if not effects.get("answered"):
                    raise RuntimeError(effects.get("raised_as", text))
            if answer is not None and answer.get("message") == "act":
                perform(answer, self._record, fault=fault, step=self.step, phase=phase)
            if answer is not None and answer.get("message") == "device" and answer["action"] in self.actions:
                self.actions[answer["action"]]()
                self._record.write("fault.device", fault=fault, step=self.step, phase=phase, action=answer["action"])
            if answer is not None and answer.get("message") == "alter":
                order = {**answer, "fault": fault}
                if order.get("what") != "weight":
                    self._alterations.append(order)
                elif self.on_weight is not None:
                    self.on_weight(order, phase)
            if answer is not None and answer.get("message") == "slow":
                self.slow.append(Slowness(answer, self._record, fault=fault, step=self.step, phase=phase))
            if answer is not None and answer.get("message") == "later":
                self._armed.setdefault(point, []).append(fault)
            self._record.write("barrier.released", fault=fault)
