"""Part of check ``checkpoint``: the record of the last checkpoint names the checkpoint that was saved last.

A resume goes by the record, so a record that stays behind loses steps although their checkpoint is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import is_background
from chaos.evidence.checkpoints.owner import kept_of
from chaos.evidence.collect import Collector
from chaos.evidence.statement_data import about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.tracked_layouts import save_of

EXPECTED = "the record of the last checkpoint names the one that was saved last"


@dataclass(frozen=True)
class NewestSave:
    """The newest save that the record beside it must name: a file without its format, or a directory and its iteration.

    ``faulted`` is the landing of a fault in the launch that saved it, which may have hit the record too.
    """

    file: str
    iteration: int | None
    save: Event
    faulted: Event | None

    def judge(self, what: str, collector: Collector) -> None:
        """Say that the record names another save; ``what`` names the record."""
        observation = f"{what}, and {self.file} was saved after it, at step {self.save.data.get('step')}"
        if self.faulted is None:
            collector.fail(
                EXPECTED,
                observation,
                self.save.source,
                data=about(self.save.rank, step=self.save.data.get("step"), file=self.file),
            )
        else:
            collector.unknown(
                EXPECTED,
                f"{observation}; a fault had landed in that launch",
                self.save.source,
                self.faulted.source,
                data=about(self.save.rank, step=self.save.data.get("step"), file=self.file),
            )


def newest_saves(history: History, artifacts: Artifacts) -> dict[Path, NewestSave]:
    """Return the newest periodic save of each directory with such a record, where it is there and its record was due.

    The record is written behind the file: after the end of a rank in the launch, or for a save in the background, it
    may not have been written.
    """
    newest: dict[Path, NewestSave] = {}
    for event in history.select("checkpoint.end", kind="periodic"):
        if is_background(event) or not _came_to_its_end(history, event) or (kept := kept_of(event, artifacts)) is None:
            continue
        landed = history.first("fault.landed", attempt=event.attempt)
        directory, file = kept.parent, Path(str(event.data.get("path"))).name
        file = file.removesuffix(".ckpt").removesuffix(".safetensors")
        if (save := save_of(kept)) is not None:
            newest[save.root] = NewestSave(save.name, save.step, event, landed)
        else:
            newest[directory] = NewestSave(file, None, event, landed)
    return newest


def _came_to_its_end(history: History, save: Event) -> bool:
    exits = history.select("rank.exit", attempt=save.attempt)
    return bool(exits) and all(event.data.get("code") == 0 for event in exits)
