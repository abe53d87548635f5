"""What the text of a script leaves to the Trainer of transformers: its saves, its steps and its resume.

The Trainer saves ``OUTPUT_DIR/checkpoint-STEP`` every ``save_steps`` steps (500 unless it is said), and goes on from
the directory that ``train(resume_from_checkpoint=…)`` gets. Source: transformers 4.56 and 5.24, trainer.py and
training_args.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from chaos.init.checkpoints import Load, Save
from chaos.init.conditions import Unit, conditions
from chaos.init.flags import Option
from chaos.init.resume import ResumeOption
from chaos.init.source import Call, Source, calls, full_name, imports
from chaos.init.torch.libraries import Trainer
from chaos.init.values import Value, Values

_LIBRARY = "transformers"
_RESUME = "resume_from_checkpoint"
_LAST = "get_last_checkpoint"
_DEFAULT = 500
_SURE = 6


def read_trainer(sources: Sequence[Source], values: Values) -> Trainer | None:
    """Return what the Trainer of a script does; None where none is made, or it saves by epochs or not at all."""
    made = [call for source in sources if _LIBRARY in imports(source) for call in calls(source) if _is_trainer(call)]
    strategy = values.option("save_strategy")
    if not made or (strategy is not None and strategy.value != "steps"):
        return None
    call = made[0]
    interval = values.option("save_steps") or Value(_DEFAULT, (f"{call.where}, the default of the Trainer",))
    directory = values.option("output_dir")
    folder = str(directory.value) if directory is not None else "trainer_output"
    save = Save(
        replace(call, name="save"),
        call.where,
        f"the Trainer of {_LIBRARY}",
        f"{folder}/checkpoint-{{step}}",
        interval,
        Unit.STEP,
        call.where,
        by_rank=True,
    )
    finds = [found for source in sources for found in calls(source) if found.name == _LAST]
    if finds:
        load = finds[0]
        return Trainer((save,), (Load(load, load.where, tuple(conditions(load.node, load.source, values))),), None)
    trains = [found for found in _trainings(sources) if found.argument(0, _RESUME) is not None]
    if not trains or interval.number is None:
        return Trainer((save,), (), None)
    option = Option(f"--{_RESUME}", (f"--{_RESUME}",), _RESUME, trains[0].where)
    text = f"{option.name}={folder}/checkpoint-{interval.number}"
    why = "the checkpoint before the fault"
    return Trainer((save,), (Load(trains[0], trains[0].where, ()),), ResumeOption(option, text, _SURE, why))


def _is_trainer(call: Call) -> bool:
    name = full_name(call.node.func, call.source)
    return name.startswith(f"{_LIBRARY}.") and name.endswith("Trainer")


def _trainings(sources: Sequence[Source]) -> list[Call]:
    return [call for source in sources for call in calls(source) if call.name == "train"]
