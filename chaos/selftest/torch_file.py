"""Changes files of ``torch.save`` by hand. It shares no code with the reader, which is under test, and needs no torch.

A file is a ZIP archive: ``data.pkl`` names the tensors, and ``data/N`` holds their values, N in the order of the
names. That order is the script's (``scenarios/live/torch/train_torch.py``).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from chaos.selftest.defect import Mutate, NothingToMutate

_PARAMETERS = 4
_SLOTS = ("step", "exp_avg", "exp_avg_sq")

_STEP = re.compile(rb"(X\x04\x00\x00\x00stepq.K)(.)", re.DOTALL)
"""The script's own number of the step in ``data.pkl``: the first key, its place in the memo, and a byte."""


def weight(number: int) -> int:
    """Return the number of the values of a weight or bias, in the order of the model."""
    return number


def slot(name: str, number: int) -> int:
    """Return the number of the values of AdamW's ``name`` of a weight."""
    return _PARAMETERS + len(_SLOTS) * number + _SLOTS.index(name)


class TorchFile:
    """The members of a file. All are written anew with the CRC of their content, as ``torch.save`` would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self._members = {info.filename: archive.read(info) for info in archive.infolist()}

    @property
    def members(self) -> dict[str, bytes]:
        """The content of every member by its name: a copy."""
        return dict(self._members)

    def write(self) -> None:
        """Replace the file."""
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, content in self._members.items():
                archive.writestr(name, content)

    def content(self, number: int) -> bytes:
        """Return the values of a tensor."""
        return self._members[self._named(f"data/{number}")]

    def set_content(self, number: int, content: bytes) -> None:
        """Replace the values of a tensor by as many others."""
        assert len(content) == len(self.content(number))
        self._members[self._named(f"data/{number}")] = content

    def clear(self, number: int) -> None:
        """Make all values of a tensor zero."""
        self.set_content(number, bytes(len(self.content(number))))

    def flip_bit(self, number: int, bit: int) -> None:
        """Change one bit of a tensor."""
        content = bytearray(self.content(number))
        content[bit // 8] ^= 1 << bit % 8
        self.set_content(number, bytes(content))

    def take(self, numbers: Iterable[int], other: TorchFile) -> None:
        """Replace these tensors by those of another file."""
        for number in numbers:
            self.set_content(number, other.content(number))

    def rename(self, name: str) -> None:
        """Give every entry of this name another name of the same length, so that nothing finds it."""
        self._pickled(lambda text: text.replace(_text(name), _text(name[:-1] + "_")))

    def set_step(self, step: int) -> None:
        """Replace the script's own number of the step."""
        self._pickled(lambda text: _STEP.sub(lambda match: match[1] + bytes([step]), text, count=1))

    def remove(self, number: int) -> None:
        """Leave the values of a tensor out."""
        del self._members[self._named(f"data/{number}")]

    def _pickled(self, change: Callable[[bytes], bytes]) -> None:
        name = self._named("data.pkl")
        self._members[name] = change(self._members[name])

    def _named(self, end: str) -> str:
        names = [name for name in self._members if name.split("/", 1)[1] == end]
        if len(names) != 1:
            raise NothingToMutate(f"{self.path.name} has {len(names)} members {end}")
        return names[0]


MOMENTS = tuple(slot(name, number) for number in range(_PARAMETERS) for name in _SLOTS[1:])
STEPS = tuple(slot("step", number) for number in range(_PARAMETERS))
STATE = range(_PARAMETERS * (1 + len(_SLOTS)))
"""Weights, biases, and all that the optimizer keeps of them."""


def torch_stored(pattern: str, change: Callable[[TorchFile], object]) -> Mutate:
    """Return a mutation that changes the files matching ``pattern``, below the job's checkpoints.

    It raises NothingToMutate if there is none, or if nothing changes.
    """

    def mutate(run_dir: Path) -> None:
        paths = sorted((run_dir / "job" / "checkpoints").glob(pattern))
        if not paths:
            raise NothingToMutate(f"no checkpoint {pattern}")
        for path in paths:
            file = TorchFile(path)
            before = file.members
            change(file)
            if file.members == before:
                raise NothingToMutate(f"{path.name} is as it was")
            file.write()

    return mutate


def _text(name: str) -> bytes:
    return b"X" + len(name).to_bytes(4, "little") + name.encode()
