"""The hooks inside ``Model.train``: steps, phases, checkpoints, the SDK's handlers.

They are set after MindSpore's modules have been executed (see :mod:`chaos.agent.after_import`) and change nothing that
the job can see. Names of modules and functions are those of MindSpore 2.7 to 2.10.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any, Callable

from chaos.agent.after_import import AfterImport
from chaos.agent.barriers import Barriers
from chaos.agent.compiling import hook_compiling
from chaos.agent.errors import error_fields, first_fields
from chaos.agent.protection import hook_protection
from chaos.agent.record import Record, optional_step
from chaos.agent.step_source import StepSource
from chaos.agent.steps import steps_done
from chaos.agent.training import Training

_HANDLERS = ("save_ckpt", "rename", "exit", "stop", "clean", "repair", "rollback", "rebuild_group", "stream_sync")
_WRITERS = ("_write_parameter_data", "_write_parameter_bytes_data")
"""MindSpore's functions that write one parameter of a .ckpt file."""

_FILE_WRITER = "_exec_save"
"""MindSpore's function that writes a whole checkpoint file and renames it."""

_CLEAN = (None, 0, 2)
"""Answers of the handler ``clean`` when all is well; only this handler's answer counts (MindIO TFT, clean handler)."""

_HANDLERS_WITH_STEP = ("save_ckpt", "rename", "repair", "rollback")


def install_hooks(
    imports: AfterImport, record: Record, barriers: Barriers, training: Training, source: StepSource
) -> None:
    """Arrange for every hook to be set when its module is imported."""
    imports.watch("mindspore.train.model", functools.partial(_hook_training, training, barriers, source))
    imports.watch("mindspore.train.serialization", functools.partial(_hook_checkpoints, training))
    imports.watch("mindspore.graph.api", functools.partial(hook_compiling, record))
    imports.watch("mindio_ttp.framework_ttp", functools.partial(_record_sdk, record))
    imports.watch("mindio_ttp.framework_ttp", functools.partial(_hook_handlers, record, barriers))
    imports.watch("mindio_ttp.framework_ttp", functools.partial(hook_protection, record))
    imports.watch("mindio_ttp.framework_ttp", functools.partial(_hook_pause, record))
    imports.watch("mindio_ttp.framework_ttp", functools.partial(_hook_reports, record))


def _hook_training(training: Training, barriers: Barriers, source: StepSource, module: ModuleType) -> None:
    """Add the step callback to every ``Model.train`` and ``Model.fit``."""
    callback = _step_callback(module.Callback, training, barriers)
    for name in ("train", "fit"):
        if hasattr(module.Model, name):
            setattr(module.Model, name, _with_callback(callback, source, getattr(module.Model, name)))


def _with_callback(callback: Any, source: StepSource, train: Callable[..., Any]) -> Callable[..., Any]:
    import inspect  # here: a rank without MindSpore need not pay for the import

    place = list(inspect.signature(train).parameters).index("callbacks") - 1  # without self

    @functools.wraps(train)
    def train_with_agent(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Passed in its original form: MindSpore's own wrapper of ``train`` finds TrainFaultTolerance among the
        # keywords only, as the value or in a list.
        if len(args) > place:
            args = (*args[:place], _first_of(callback, args[place]), *args[place + 1 :])
        else:
            kwargs["callbacks"] = _first_of(callback, kwargs.get("callbacks"))
        with source.model_train():
            return train(self, *args, **kwargs)

    return train_with_agent


def _first_of(callback: Any, others: Any) -> Any:
    """Return the job's callbacks behind the agent's: a step's end is recorded before any callback reports it."""
    if isinstance(others, tuple):
        return (callback, *others)
    return [callback, *(others if isinstance(others, list) else [] if others is None else [others])]


def _step_callback(base: type, training: Training, barriers: Barriers) -> Any:
    class ChaosSteps(base):  # type: ignore[misc]
        """A callback that passes on the points of a training that MindSpore's callbacks know."""

        def __init__(self) -> None:
            super().__init__()
            self._arguments: Any = None
            self._offset = 0
            self._hooked = False
            self._joining = _replaces_lost_process

        def on_train_begin(self, run_context: Any) -> None:
            if self._joins():
                training.joins()
                return
            arguments = self._arguments = run_context.original_args()
            updates = _updates_done(arguments)
            steps = int(arguments.cur_step_num) if updates is None else steps_done(updates, arguments, training)
            self._offset = steps - arguments.cur_step_num
            if "forward" in barriers.armed_phases() and not self._hooked:
                arguments.train_network.register_forward_pre_hook(_pass_forward)
                self._hooked = True
            parameters = ((parameter.name, parameter) for parameter in arguments.train_network.get_parameters())
            training.begin(steps, parameters, updates=updates)

        def _joins(self) -> bool:
            """Return whether this training has no state yet: the first one of a process that replaces a lost one (ARF).

            The training runs into the first collective and ends there, whatever its parameters and its step counter
            are. Before its end it may end steps that have no state, as within an accumulation of gradients. Only the
            next training, with the state of a replica, counts.
            """
            joins, self._joining = self._joining(), _never
            self._arguments = None
            return joins

        def on_train_step_begin(self, run_context: Any) -> None:
            if self._arguments is not None:
                # The arguments are a dict with attribute access in Python; as a dict they cost a tenth.
                training.step_begin(self._arguments["cur_step_num"] + self._offset)

        def on_train_step_end(self, run_context: Any) -> None:
            if self._arguments is not None:
                training.step_end(self._arguments.net_outputs, self._arguments.train_dataset_element)

        def on_train_end(self, run_context: Any) -> None:
            del run_context
            training.end()

    def _pass_forward(cell: Any, inputs: Any) -> Any:
        del cell
        training.reach("forward")
        return inputs

    return ChaosSteps()


def _replaces_lost_process() -> bool:
    """Return MindSpore's own flag (2.7 and later), which the SDK's word on this process sets before training."""
    flags = sys.modules.get("mindspore._c_expression")
    return bool(getattr(flags, "is_reboot_node", _never)())


def _never() -> bool:
    return False


def _updates_done(arguments: Any) -> int | None:
    """Return the number of updates by the optimizer, which a checkpoint restores; None where it does not count them."""
    optimizer = arguments.optimizer or getattr(arguments.network, "optimizer", None)
    counter = getattr(optimizer, "global_step", None)
    return None if counter is None else int(counter.asnumpy().reshape(-1)[0])


def _hook_checkpoints(training: Training, module: ModuleType) -> None:
    """Record every checkpoint that is saved or loaded through MindSpore's own functions."""
    save, load = module.save_checkpoint, module.load_checkpoint
    for name in _WRITERS:
        if hasattr(module, name):
            setattr(module, name, _after_write(training, getattr(module, name)))
    if hasattr(module, _FILE_WRITER):
        setattr(module, _FILE_WRITER, _round_file(training, getattr(module, _FILE_WRITER)))

    @functools.wraps(save)
    def save_with_agent(save_obj: Any, ckpt_file_name: Any, *args: Any, **kwargs: Any) -> Any:
        # MindFormers passes all of these by position: integrated_save, async_save, append_dict.
        appended = kwargs.get("append_dict", args[2] if len(args) > 2 else None) or {}
        end_of_life = "__exception_save__" in appended
        step = appended.get("step_num") if end_of_life else None
        asynchronous = kwargs.get("async_save", args[1] if len(args) > 1 else False)
        with training.saving(
            str(ckpt_file_name),
            end_of_life=end_of_life,
            step=step if isinstance(step, int) else None,
            asynchronous=bool(asynchronous),
            appended=[name for name in appended if isinstance(name, str)],
        ):
            return save(save_obj, ckpt_file_name, *args, **kwargs)

    @functools.wraps(load)
    def load_with_agent(ckpt_file_name: Any, *args: Any, **kwargs: Any) -> Any:
        return training.load(str(ckpt_file_name), lambda: load(ckpt_file_name, *args, **kwargs))

    module.save_checkpoint = save_with_agent  # type: ignore[attr-defined]
    module.load_checkpoint = load_with_agent  # type: ignore[attr-defined]


def _round_file(training: Training, write: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that writes a whole file; for a background save MindSpore calls it in a thread."""

    @functools.wraps(write)
    def write_with_agent(ckpt_file_name: Any, *args: Any, **kwargs: Any) -> Any:
        with training.writing(str(ckpt_file_name)):
            return write(ckpt_file_name, *args, **kwargs)

    return write_with_agent


def _after_write(training: Training, write: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that writes one parameter, followed by the barrier in the middle of a file."""

    @functools.wraps(write)
    def write_with_agent(*args: Any, **kwargs: Any) -> Any:
        result = write(*args, **kwargs)
        training.wrote()
        return result

    return write_with_agent


def _record_sdk(record: Record, module: ModuleType) -> None:
    """Record the origin of this process's SDK; whether it is the vendor's is for the readers to decide."""
    record.write("sdk.imported", file=getattr(module, "__file__", None))


def _hook_handlers(record: Record, barriers: Barriers, module: ModuleType) -> None:
    """Record every call that the SDK makes into MindSpore's handlers, whichever SDK it is."""
    for name in _HANDLERS:
        register = getattr(module, f"tft_register_{name}_handler", None)
        if register is not None:
            setattr(module, register.__name__, _recording_registration(record, barriers, name, register))


def _recording_registration(
    record: Record, barriers: Barriers, name: str, register: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(register)
    def register_with_agent(function: Callable[..., Any], *context: Any) -> Any:
        @functools.wraps(function)
        def handler(*args: Any) -> Any:
            step = args[0] if name in _HANDLERS_WITH_STEP and args and isinstance(args[0], int) else None
            record.write("handler.enter", name=name, **optional_step(step))
            try:
                barriers.enter(name)
                result = function(*args)
            except BaseException as error:
                first = first_fields(error)
                record.write("handler.exit", name=name, ok=False, error=str(error)[:500], **first)
                raise
            if name == "clean" and result not in _CLEAN:
                record.write("handler.exit", name=name, ok=False, error=f"it answered {str(result)[:100]}")
                return result
            record.write("handler.exit", name=name, ok=True)
            return result

        result = register(handler, *context)
        record.write("sdk.registered", name=name, function=_name_of(function))
        return result

    return register_with_agent


def _name_of(function: Any) -> str:
    """Return the name of a handler's definition, or the type of a handler without a name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return f"{module}.{name}"[:200] if name else type(function).__name__


def _hook_pause(record: Record, module: ModuleType) -> None:
    """Record when a rank comes to the point at which its training can be paused, and when it goes on from there."""
    pause = getattr(module, "tft_pause_train", None)
    if pause is None:
        return
    write_enter, write_exit = record.step_writer("pause.enter"), record.step_writer("pause.exit")

    @functools.wraps(pause)
    def pause_with_agent(cur_step: int) -> Any:
        write_enter(cur_step)
        try:
            return pause(cur_step)
        finally:
            write_exit(cur_step)

    module.tft_pause_train = pause_with_agent  # type: ignore[attr-defined]


def _hook_reports(record: Record, module: ModuleType) -> None:
    """Record a rank's reports to the SDK about itself: the rank has lived to report, whatever ends it afterwards.

    The record has the exception that the rank is handling, which appears nowhere else where the SDK ends the process.
    """
    report = getattr(module, "tft_report_error", None)
    if report is None:
        return
    names = {state.value: state.name for state in getattr(module, "ReportState", ())}

    @functools.wraps(report)
    def report_with_agent(state: Any, *args: Any, **kwargs: Any) -> Any:
        state_name = {"name": names[state]} if isinstance(state, int) and state in names else {}
        exception = error_fields(sys.exc_info()[1])
        record.write("error.reported", state=state if isinstance(state, int) else str(state), **state_name, **exception)
        return report(state, *args, **kwargs)

    module.tft_report_error = report_with_agent  # type: ignore[attr-defined]
