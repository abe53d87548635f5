"""The device that a script trains on, as its source says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.init.flags import Option
from chaos.init.source import Source, calls
from chaos.init.values import Values

ASCEND, CPU, GPU = "Ascend", "CPU", "GPU"

_WORDS = {
    "ascend": ASCEND,
    "npu": ASCEND,
    "hccl": ASCEND,
    "cpu": CPU,
    "gloo": CPU,
    "gpu": GPU,
    "cuda": GPU,
    "nccl": GPU,
}
"""Names of a device, and of the collectives of PyTorch on it, in small letters."""

_IN_TORCH = {ASCEND: "npu", CPU: "cpu", GPU: "cuda"}

_SETS = {"set_device": (0, "device_target"), "set_context": (None, "device_target")}


@dataclass(frozen=True)
class Device:
    """The device, where it is said, and the option that chooses it, if there is one.

    ``if_there`` says that the script takes it only where the machine has it. ``text`` is the word of the option.
    """

    name: str
    where: str
    option: str = ""
    if_there: bool = False
    text: str = ""

    def spelled(self, name: str) -> str:
        """Return the name of another device as the script's option spells devices."""
        return _IN_TORCH[name] if self.text.partition(":")[0] in _IN_TORCH.values() else name


def read_device(sources: Sequence[Source], options: Sequence[Option], values: Values) -> Device | None:
    """Return the device of a job; None where its source does not say it."""
    for option in sorted(options, key=_is_backend):
        if not (_is_backend(option) or _is_device(option)):
            continue
        value = values.option(option.attribute)
        if value is not None and (name := _known(str(value.value))) is not None:
            return Device(name, value.origin, "" if _is_backend(option) else option.name, text=str(value.value))
    for source in sources:
        for call in calls(source):
            if call.name in _SETS:
                position, word = _SETS[call.name]
                value = values.of(call.argument(position, word), source)
                if value is not None and (name := _known(str(value.value))) is not None:
                    return Device(name, call.where)
    return None


def _known(text: str) -> str | None:
    """Return the device of a word, as ``cuda:0``; None for another word."""
    return _WORDS.get(text.lower().partition(":")[0])


def _is_device(option: Option) -> bool:
    name = option.attribute
    return name.startswith("device") and "id" not in name and "num" not in name


def _is_backend(option: Option) -> bool:
    return option.attribute in ("backend", "dist_backend", "distributed_backend")
