"""Which mechanisms acted, by the calls into MindSpore's handlers, by the SDK's own log and by those of the ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.evidence.artifacts import Artifacts
from chaos.history.reader import History

TTP = "TTP"
TRE = "TRE"

_HANDLERS = {
    "save_ckpt": TTP,
    "rename": TTP,
    "clean": "online repair",
    "repair": "online repair",
    "rollback": "online repair",
    "rebuild_group": "ARF",
    "stream_sync": "TSP",
}
"""Handlers that only one kind of mechanism calls. ``stop`` and ``exit`` belong to every one."""

_LOG_KINDS = {
    "ttp.dump_config": TTP,
    "ttp.dump_begin": TTP,
    "ttp.renamed": TTP,
    "ttp.dump_done": TTP,
    "ttp.clean_begin": "online repair",
    "ttp.rollback_begin": "online repair",
    "ttp.rollback_done": "online repair",
    "ttp.groups_rebuilt": "ARF",
    "ttp.group_rebuild": "ARF",
    "ttp.reboot": "ARF",
}

_STATES = {"REPAIR": "online repair", "PAUSE": "TSP"}

_WORKER_KINDS = {
    "tre.thrown": "an abnormal norm stops the training",
    "tft.resumed": "training resumed after TREError",
}

_REPAIRS = {"retry": "online repair", "arf": "ARF"}


@dataclass
class Acted:
    """Evidence by mechanism: what was seen, and where. ``listened`` says whether anybody was there to see."""

    evidence: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    listened: bool = False

    def add(self, mechanism: str, seen: str, where: str) -> None:
        """Note a sign of a mechanism."""
        self.evidence.setdefault(mechanism, []).append((seen, where))


def mechanisms(history: History, artifacts: Artifacts, attempt: str) -> Acted:
    """Every sign of a mechanism in one attempt."""
    acted = Acted()
    acted.listened = history.first("agent.start", attempt=attempt) is not None
    for one in history.select("handler.enter", attempt=attempt):
        name = str(one.data.get("name"))
        if name in _HANDLERS:
            acted.add(_HANDLERS[name], f"handler {name} on rank {one.rank}", one.source)
    for event in artifacts.sdk_events(attempt):
        acted.listened = True
        mechanism = _LOG_KINDS.get(event.kind)
        if event.kind == "ttp.repair_begin":
            mechanism = _REPAIRS.get(str(event.fields.get("repair")), "online repair")
        elif event.kind == "ttp.state":
            mechanism = _STATES.get(str(event.fields.get("state")))
        if mechanism is not None:
            acted.add(mechanism, f"the SDK's log: {event.kind.removeprefix('ttp.')}", event.source)
    for rank in sorted({one.rank for one in history.select("agent.start", attempt=attempt) if one.rank is not None}):
        for event in artifacts.signs(attempt, rank):
            if event.kind in _WORKER_KINDS:
                acted.add(TRE, f"the log of rank {rank}: {_WORKER_KINDS[event.kind]}", event.source)
    return acted
