"""What the text of a script leaves to the Trainer of Lightning: its saves, its steps and its resume.

A ``ModelCheckpoint`` saves every ``every_n_train_steps`` steps, else at the end of every epoch, as the Trainer does
without one. ``fit(…, ckpt_path="last")`` goes on from ``last.ckpt``, which ``save_last`` writes. Source: Lightning
2.6.6, callbacks/model_checkpoint.py and trainer/trainer.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from chaos.init.checkpoints import Load, Save
from chaos.init.conditions import Unit
from chaos.init.flags import Option
from chaos.init.resume import ResumeOption
from chaos.init.source import Call, Source, calls, full_name, last_word
from chaos.init.torch.libraries import Trainer
from chaos.init.torch.owners import LIGHTNING
from chaos.init.values import Value, Values

_RESUME = "ckpt_path"
_LAST = "last"
_SURE = 6


def read_lightning(sources: Sequence[Source], values: Values, options: Sequence[Option]) -> Trainer | None:
    """Return what the Trainer of a script does; None where none is made."""
    trainers = _made(sources, "Trainer")
    if not trainers:
        return None
    trainer = trainers[0]
    callbacks = _made(sources, "ModelCheckpoint")
    saves = [_save(call, values) for call in callbacks]
    if not callbacks and not _is_false(trainer.argument(None, "enable_checkpointing")):
        saves = [_save(replace(trainer, name="save"), values)]
    fits = [call for source in sources for call in calls(source) if call.name == "fit" and _goes_on(call)]
    return Trainer(
        tuple(sorted(saves, key=lambda save: save.unit is not Unit.STEP)),
        tuple(Load(call, call.where, ()) for call in fits),
        _resume(fits, callbacks, options),
        _given(trainer, "max_steps", values),
        _given(trainer, "max_epochs", values),
    )


def _made(sources: Sequence[Source], name: str) -> list[Call]:
    found = [call for source in sources for call in calls(source) if call.name == name]
    return [call for call in found if full_name(call.node.func, call.source).partition(".")[0] in LIGHTNING]


def _save(call: Call, values: Values) -> Save:
    by_steps = call.argument(None, "every_n_train_steps")
    by_time = call.argument(None, "train_time_interval")
    epochs = call.argument(None, "every_n_epochs")
    default = None if by_time is not None or epochs is not None else Value(1, (f"{call.where}, the default",))
    interval = values.number(by_steps, call.source) or values.number(epochs, call.source) or default
    unit = Unit.EPOCH if by_steps is None else Unit.STEP
    place = values.text(call.argument(0, "dirpath"), call.source) if call.name == "ModelCheckpoint" else ""
    folder = f"{place}/" if place else "the directory of its logger"
    return Save(call, call.where, "Lightning", folder, interval, unit, call.where, by_rank=True)


def _resume(fits: Sequence[Call], callbacks: Sequence[Call], options: Sequence[Option]) -> ResumeOption | None:
    """Return the option that gives ``ckpt_path``, with the word for the newest checkpoint if one is written by it."""
    words = {last_word(node) for call in fits for node in _expressions(call.argument(4, _RESUME))}
    option = next((option for option in options if option.attribute in words), None)
    if option is None or not option.takes_value or option.default is not None:
        return None
    writes_last = any(
        (last := call.argument(None, "save_last")) is not None and not _is_false(last) for call in callbacks
    )
    text = f"{option.name}={_LAST}" if writes_last else None
    return ResumeOption(option, text, _SURE, f"{fits[0].where} goes on from what it names")


def _expressions(node: ast.expr | None) -> list[ast.expr]:
    return [] if node is None else [part for part in ast.walk(node) if isinstance(part, ast.expr)]


def _goes_on(call: Call) -> bool:
    path = call.argument(4, _RESUME)
    return path is not None and not (isinstance(path, ast.Constant) and path.value is None)


def _given(call: Call, name: str, values: Values) -> Value | None:
    return values.number(call.argument(None, name), call.source)


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
