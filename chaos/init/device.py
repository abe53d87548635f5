"""The device that a script trains on, as its source says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.init.flags import Option
from chaos.init.source import Source, calls
from chaos.init.values import Values

ASCEND, CPU = "Ascend", "CPU"

_SETS = {"set_device": (0, "device_target"), "set_context": (None, "device_target")}


@dataclass(frozen=True)
class Device:
    """The device, where it is said, and the option that chooses it, if there is one."""

    name: str
    where: str
    option: str = ""


def read_device(sources: Sequence[Source], options: Sequence[Option], values: Values) -> Device | None:
    """Return the device of a job; None where its source does not say it."""
    for option in options:
        if not option.attribute.startswith("device") or "id" in option.attribute or "num" in option.attribute:
            continue
        value = values.option(option.attribute)
        if value is not None and (name := _known(str(value.value))) is not None:
            return Device(name, value.origin, option.name)
    for source in sources:
        for call in calls(source):
            if call.name in _SETS:
                position, word = _SETS[call.name]
                value = values.of(call.argument(position, word), source)
                if value is not None and (name := _known(str(value.value))) is not None:
                    return Device(name, call.where)
    return None


def _known(text: str) -> str | None:
    lowered = text.lower()
    return ASCEND if lowered in ("ascend", "npu") else CPU if lowered == "cpu" else None
