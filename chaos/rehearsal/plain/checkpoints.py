"""The job's checkpoints: names and places are those of MindSpore's own files, end-of-life and periodic."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable
from typing import Any

import numpy

from chaos.rehearsal.plain.ckpt import read_ckpt, write_ckpt
from chaos.rehearsal.plain.device import PlainDevice
from chaos.rehearsal.plain.mesh import Mesh
from chaos.rehearsal.plain.state import State

_KEPT = 10


class Checkpoints:
    """Saves and loads the state of one rank below ``output``.

    ``interval`` is the number of steps between two periodic checkpoints, 0 for none; the last of ``steps`` is saved,
    too. With ``crc`` each file gets a checksum.
    """

    def __init__(
        self,
        output: str,
        state: State,
        mesh: Mesh,
        device: PlainDevice,
        *,
        per_epoch: int,
        interval: int,
        steps: int,
        crc: bool = False,
    ) -> None:
        self._output = output
        self._state = state
        self._mesh = mesh
        self._device = device
        self.per_epoch = per_epoch
        self._interval = interval
        self._steps = steps
        self._crc = crc
        self._periodic: list[str] = []

    def save_end_of_life(self, step: int) -> None:
        """Save this rank's state for the step that the SDK names, in a directory that is not renamed yet."""
        if not self._state.consistent:
            raise RuntimeError("Can't save parameters, because they are left in inconsistent state!")
        epoch, place = self._counted()
        rank = self._mesh.rank
        directory = os.path.join(self._end_of_life(step) + "_tmp", f"rank_{rank}")
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, f"ttp_rank_{rank}-{epoch}_{place}.ckpt")
        appended = {
            "epoch_num": epoch,
            "step_num": self._state.steps,
            "cur_rank": rank,
            "batch_num": self.per_epoch,
        }
        self._save(path, appended, end_of_life=True)

    def rename(self, step: int) -> None:
        """Give the directory its name: all ranks that had to save have saved."""
        os.rename(self._end_of_life(step) + "_tmp", self._end_of_life(step))

    def save_if_due(self) -> None:
        """Save a periodic checkpoint after a step at which one is due."""
        step = self._state.steps
        if not self._interval or (step % self._interval and step != self._steps):
            return
        epoch, place = self._counted()
        os.makedirs(self._own, exist_ok=True)
        path = os.path.join(self._own, f"plain-{epoch}_{place}.ckpt")
        self._save(path, {"epoch_num": epoch, "step_num": step}, end_of_life=False)
        self._periodic = [*(earlier for earlier in self._periodic if earlier != path), path]
        if len(self._periodic) > _KEPT:
            os.unlink(self._periodic.pop(0))

    def load_end_of_life(self) -> int:
        """Load the newest finished end-of-life checkpoint of a rank of this rank's replica group. Returns its step.

        Raises FileNotFoundError where there is none.
        """
        finished = {
            int(match[1]): directory
            for directory in glob.glob(self._end_of_life("*"))
            if (match := re.search(r"step_(\d+)$", directory))
        }
        if finished:
            for rank in self._mesh.replicas:
                for path in glob.glob(os.path.join(finished[max(finished)], f"rank_{rank}", "*.ckpt")):
                    return self._load(path)
        raise FileNotFoundError(f"no finished end-of-life checkpoint of ranks {self._mesh.replicas} in {self._output}")

    def resume(self) -> int:
        """Load the checkpoints of an ended job: an end-of-life checkpoint, else periodic ones. Returns their step.

        Raises FileNotFoundError where there is neither.
        """
        try:
            return self.load_end_of_life()
        except FileNotFoundError:
            step = self.load_newest_periodic()
        if not step:
            raise FileNotFoundError(f"no step in {self._output} has a file for every rank, its own or a replica's")
        return step

    def load_newest_periodic(self) -> int:
        """Load the newest periodic checkpoint that every replica group has. Returns its step, 0 where there is none."""
        steps = [self._periodic_steps(group) for group in self._mesh.groups]
        common = set(steps[0]).intersection(*steps[1:])
        return self._load(steps[self._mesh.group][max(common)]) if common else 0

    def roll_back(self) -> int:
        """Load the newest periodic checkpoint of this rank itself. Returns its step.

        Raises FileNotFoundError if there is none.
        """
        saved_steps = self._periodic_steps((self._mesh.rank,))
        if not saved_steps:
            raise FileNotFoundError(f"no periodic checkpoint in {self._own} to roll back to")
        return self._load(saved_steps[max(saved_steps)])

    @property
    def _own(self) -> str:
        return os.path.join(self._output, f"rank_{self._mesh.rank}")

    def _periodic_steps(self, ranks: Iterable[int]) -> dict[int, str]:
        """Return the finished, readable periodic files of these ranks by the step in them: names are hints."""
        files: dict[int, str] = {}
        for rank in ranks:
            for path in sorted(glob.glob(os.path.join(self._output, f"rank_{rank}", "plain-*.ckpt"))):
                try:
                    files.setdefault(int(read_ckpt(path, _open, crc=self._crc)["step_num"]), path)
                except (OSError, ValueError, KeyError) as error:
                    print(f"{path} cannot be read, looking for another one: {error}", flush=True)
        return files

    def _end_of_life(self, step: int | str) -> str:
        return os.path.join(self._output, f"ttp_saved_checkpoints-step_{step}")

    def _counted(self) -> tuple[int, int]:
        """Return the epoch of the last step and its place in it, both from 1."""
        epoch, place = divmod(self._state.steps - 1, self.per_epoch)
        return epoch + 1, place + 1

    def _save(self, path: str, appended: dict[str, int], *, end_of_life: bool) -> None:
        values = {**self._state.parameters, **{name: numpy.int64(value) for name, value in appended.items()}}
        training, step = self._device.training, self._state.steps
        with training.saving(path, end_of_life=end_of_life, step=step, appended=appended):
            write_ckpt(path, values, self._device.create, training.wrote, crc=self._crc)

    def _load(self, path: str) -> int:
        saved: dict[str, Any] = self._device.training.load(
            path, lambda: read_ckpt(path, self._device.open, crc=self._crc)
        )
        self._state.load(saved)
        return int(saved["step_num"])


def _open(path: str) -> Any:
    """Return a file for inspection, which does not count as a load."""
    return open(path, "rb")
