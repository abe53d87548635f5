"""The rules by mechanism. A further mechanism is one more file and one more line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from chaos.mechanisms.arf import rule as arf
from chaos.mechanisms.case import Case
from chaos.mechanisms.online import rule as online
from chaos.mechanisms.rsc import rule as rsc
from chaos.mechanisms.tre import rule as tre
from chaos.mechanisms.tsp import rule as tsp
from chaos.mechanisms.ttp import rule as ttp


@dataclass(frozen=True)
class Rule:
    """How a mechanism is known: the handlers it may call, and what judges them.

    ``signs`` are the names by which chaos.evidence.acted calls what it leaves behind.
    """

    handlers: tuple[str, ...]
    signs: tuple[str, ...]
    judge: Callable[[Case], None]


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "TTP": Rule(ttp.HANDLERS, ("TTP",), ttp.judge),
        "TSP": Rule(tsp.HANDLERS, ("TSP",), tsp.judge),
        "TRE": Rule(tre.HANDLERS, tre.SIGNS, tre.judge),
        "UCE": Rule(online.HANDLERS["UCE"], ("online repair",), online.judge),
        "HCCE": Rule(online.HANDLERS["HCCE"], ("online repair",), online.judge),
        "RSC": Rule(rsc.HANDLERS, (), rsc.judge),
        "ARF": Rule((*arf.HANDLERS, "exit"), ("ARF", "online repair"), arf.judge),
    }
)
