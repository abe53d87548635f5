"""The agent's work at the points of a training, for any framework.

This is the seam for every framework. MindSpore's hooks (:mod:`chaos.agent.hooks`) call these methods. For a job on any
other framework an extension of the agent calls them: its ``install(agent)`` takes ``agent.training`` and binds it to
the points of the job's own loop, in this order:

- ``begin`` before the first step of each training, also of one that goes on after a repair within the process;
  ``joins`` in its place where a process has no state yet, because it waits for a replica's state;
- ``step_begin``, ``reach("forward")``, ``reach("allreduce.enter")``, ``reach("optimizer.update")``, ``step_end``;
- ``saving`` round each checkpoint, ``wrote`` after each part of it, ``load`` for each that is read;
- ``end`` after the last step.

Handlers that are registered with ``mindio_ttp`` are recorded without any of this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from threading import get_ident
from time import perf_counter_ns
from typing import Any, Callable

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests, array_of
from chaos.agent.earlier_saves import Save, name_of
from chaos.agent.record import Record, optional_step
from chaos.agent.stacks import write_in_crash
from chaos.agent.torch.shards import holders

_MOST_NAMES = 100
"""Names of appended values that are recorded with a save."""

Named = Iterable[tuple[str, Any]]


class Training:
    """One process's training: its records, the digests of its states and its barriers.

    Parameters, outputs and batches are arrays of numpy, or tensors that become one by a method of their own.
    ``steps_per_update`` is the number of steps for each update of the optimizer. ``loaded_step`` is the ``step_num`` of
    the last checkpoint that was read; None where the checkpoint has none. ``save_of`` returns an earlier process's save
    of a file; None where no record has it. ``exports`` are the names, with ``*`` for any text, of files that the job
    never goes on from: their saves are not recorded. ``stacks`` is the open file for the stacks of a crash after the
    training.
    ``steps_begun`` is the number of steps that have begun in this process, ``in_step`` whether the last of them has not
    ended, and ``left_out`` the number of the job's steps whose update was left out. ``before_step`` is called before
    each step.
    """

    def __init__(
        self,
        record: Record,
        barriers: Barriers,
        digests: Digests,
        steps_per_update: int = 1,
        *,
        save_of: Callable[[str], Save | None] = lambda file: None,
        exports: Iterable[str] = (),
        stacks: int | None = None,
    ) -> None:
        self.steps_per_update = steps_per_update
        self.loaded_step: int | None = None
        self.steps_begun = 0
        self.in_step = False
        self.left_out = 0
        self.reach = barriers.reach
        self.before_step: Callable[[], None] | None = None
        self._record = record
        self._barriers = barriers
        self._digests = digests
        self._write_begin = record.step_writer("step.begin")
        self._write_end = record.step_writer("step.end")
        self._spent_ns = 0
        self._began_ns = 0
        self._costs_us: list[float] = []
        self._state: Named = []
        self._end_of_life = False
        self._saved: set[str] = set()
        self._last_saves: dict[str, dict[str, Any]] = {}
        self._saving: set[str] = set()
        self._loaded: set[str] = set()
        self._loaded_unnamed = False
        self._save_of = save_of
        self._exports = tuple(exports)
        self._in_export = False
        self._stacks = stacks
        self._background: dict[str, tuple[dict[str, Any], int]] = {}
        self._thread: int | None = None

    def begin(
        self,
        initial_step: int,
        parameters: Named | Callable[[], Named],
        *,
        updates: int | None = None,
        own_slots: bool = False,
        frozen: Sequence[str] = (),
    ) -> None:
        """Begin the training after ``initial_step``, counted over the whole job.

        ``parameters`` are the weights and all state of the optimizer, by name; their values are read again after every
        step. Where a step replaces the objects themselves, a function returns them. ``updates`` is the optimizer's
        number of updates until then; it is recorded where it differs from the number of steps. ``own_slots`` says that
        the optimizer keeps the state of some weights only, and other ranks keep that of the others. ``frozen`` are the
        names of weights that are not trained.
        """
        self._state = _Later(parameters) if callable(parameters) else list(parameters)
        self._barriers.parameters = list(self._state)
        counted = {} if updates in (None, initial_step) else {"updates": updates}
        self._record.write("train.begin", initial_step=initial_step, **counted)
        same = holders(self._barriers.parameters)
        if own_slots or same is not None:
            self._record.write("state.sharded", optimizer=own_slots, **({} if same is None else {"holders": same}))
        self._digests.write_initial(self._barriers.parameters, frozen)
        self._thread = get_ident()
        self._loaded.clear()
        self._loaded_unnamed = False

    def joins(self) -> None:
        """Begin in a process whose state is still to come: nothing that it does before it has the state is a step."""
        self._record.write("train.joins")

    def joined(self, timeout: float | None) -> None:
        """Note that all ranks have met. ``timeout`` is that of their collectives in seconds, if the job gives one."""
        self._record.write("group.ready", **({} if timeout is None else {"timeout": timeout}))

    def voted(self, **fields: Any) -> None:
        """Note a vote of the replica groups on a step: whether its update counts, and who took part."""
        self._record.write("step.voted", **fields)

    def left_out_update(self, step: int) -> None:
        """Note that the update of a step was left out. The count of an optimizer is behind that of the steps then."""
        self.left_out += 1
        self._record.write("update.left_out", step=step)

    def step_begin(self, step: int) -> None:
        """Begin the step."""
        if self.before_step is not None:
            self.before_step()
        began = self._began_ns = perf_counter_ns()
        self._barriers.step = step
        self.steps_begun += 1
        self.in_step = True
        if self._saved:
            self._saved.clear()
        self._write_begin(step)
        self._spent_ns = perf_counter_ns() - began
        self.reach("step.begin")

    def step_end(self, outputs: Any, batch: Any, hyperparameters: Mapping[str, float] | None = None) -> None:
        """End the step. ``outputs`` is the loss or begins with it; ``batch`` is the batch that was trained.

        ``hyperparameters`` are the optimizer's numbers with which the step was trained, such as its learning rate.
        """
        began = perf_counter_ns()
        step = self._barriers.step
        self.in_step = False
        self._write_end(step)
        self._costs_us.append((self._spent_ns + perf_counter_ns() - began) / 1000)
        self._digests.write(step, outputs=outputs, batch=batch, parameters=self._state, hyperparameters=hyperparameters)
        if self._barriers.slow:
            duration = (perf_counter_ns() - self._began_ns) / 1e9
            self._barriers.slow = [slowness for slowness in self._barriers.slow if not slowness.drag(step, duration)]
        self.reach("step.end")

    def changed_since_step(self, frozen: Iterable[str] = ()) -> list[str]:
        """Return the names of the weights that have changed since the last step ended; ``frozen`` are no gradient's.

        None where that step has no digest. Running statistics do not count: a forward run changes them, and the next
        step's may have been before its gradient.
        """
        also = set(frozen)
        weights = [
            (name, value) for name, value in self._state if getattr(value, "requires_grad", True) or name in also
        ]
        return self._digests.changed_since(self._barriers.step, weights)

    def end(self) -> None:
        """End the training. The stacks of a crash from now on are written."""
        write_in_crash(self._stacks)
        self._record.write("train.end")
        self._record.write(
            "agent.cost",
            steps=len(self._costs_us),
            hooks_us_median=_median(self._costs_us),
            digest_us_median=_median(self._digests.costs_us),
        )

    @contextmanager
    def saving(
        self,
        path: str,
        *,
        end_of_life: bool,
        step: int | None = None,
        asynchronous: bool = False,
        appended: Iterable[str] = (),
    ) -> Iterator[None]:
        """Wrap the saving of one checkpoint file. ``step`` is by default the rank's current step.

        ``appended`` are the names that the caller adds to the parameters. The barriers of an end-of-life save are
        points of the SDK's handler, not of a step. A save within the saving of the same file is a part of it.
        """
        name = name_of(path)
        if name in self._saving:
            yield
            return
        if not end_of_life and self._is_export(path):
            with self._exporting():
                yield
            return
        fields: dict[str, Any] = {
            "kind": "end-of-life" if end_of_life else "periodic",
            "path": os.path.abspath(path),  # a job may save by one name of a file and load by another
            **optional_step(step if end_of_life or step is not None else self._own_step()),
        }
        if names := sorted(appended)[:_MOST_NAMES]:
            fields["appended"] = names
        if self.left_out:
            fields["left_out"] = self.left_out
        if asynchronous:
            fields["asynchronous"] = True
            self._background[name] = fields, get_ident()
        before, self._end_of_life = self._end_of_life, end_of_life
        self._saving.add(name)
        try:
            self._record.write("checkpoint.begin", **fields)
            self._reach_in_save("checkpoint.begin")
            yield
            self._record.write("checkpoint.end", **fields)
            self._saved.add(name)
            self._last_saves[fields["path"]] = fields
            self._reach_in_save("checkpoint.end")
        finally:
            self._saving.discard(name)
            self._end_of_life = before

    def is_elsewhere(self) -> bool:
        """Return whether this is another thread than that of the loop, and no end-of-life save runs."""
        return self._thread not in (None, get_ident()) and not self._end_of_life

    def step_of_state(self, state: Any) -> int | None:
        """Return the step in which a state was taken that is saved now; None where it is not known."""
        return self._digests.taken.step_of(state) if self.is_elsewhere() else self._own_step()

    @contextmanager
    def saving_later(self, path: str, step: int | None) -> Iterator[None]:
        """Wrap the saving of one checkpoint file by a thread of the job's own, while the loop goes on.

        It has the ``step`` in which the state was taken, or none, and no barrier: the thread is in no step.
        """
        name = name_of(path)
        if name in self._saving or self._is_export(path):
            yield
            return
        taken = optional_step(step)
        fields: dict[str, Any] = {"kind": "periodic", "path": os.path.abspath(path), **taken, "late": True}
        self._saving.add(name)
        try:
            self._record.write("checkpoint.begin", **fields)
            yield
            self._record.write("checkpoint.end", **fields)
            self._last_saves[fields["path"]] = fields
        finally:
            self._saving.discard(name)

    @contextmanager
    def copying(self, path: str, to: str) -> Iterator[None]:
        """Wrap the copying of a saved file: its copy is one more save of the same state. Both paths are absolute.

        A fault in a save hits the save itself, so there is no barrier.
        """
        save = self._last_saves.get(path)
        if save is None or save["kind"] != "periodic" or self._is_export(to):
            yield
            return
        fields = {**save, "path": to, "copy_of": path}
        self._record.write("checkpoint.begin", **fields)
        yield
        self._record.write("checkpoint.end", **fields)
        self._last_saves[to] = fields

    def _is_export(self, path: str) -> bool:
        return any(fnmatchcase(os.path.basename(path), export) for export in self._exports)

    @contextmanager
    def _exporting(self) -> Iterator[None]:
        """Take no part of a file for one of a checkpoint."""
        before, self._in_export = self._in_export, True
        try:
            yield
        finally:
            self._in_export = before

    def _own_step(self) -> int | None:
        """Return the rank's current step; None as long as a process with a loaded state has begun no step."""
        return None if self.has_loaded and not self.steps_begun else self._barriers.step

    def has_saved(self, path: str) -> bool:
        """Return whether the saving of this file is recorded already, since the last step began."""
        return name_of(path) in self._saved

    @contextmanager
    def writing(self, path: str) -> Iterator[None]:
        """Wrap the writing of one checkpoint file, in any thread.

        It is recorded for a background save, whose call has returned long before; a writer that fails there raises in a
        thread, and nobody else learns of the error. Whether the writing thread differs from the calling one is
        recorded, too: the caller has only asked for the save.
        """
        ok = False
        try:
            yield
            ok = True
        finally:
            fields, caller = self._background.pop(name_of(path), (None, 0))
            if fields is not None:
                self._record.write("checkpoint.written", **fields, ok=ok, background=get_ident() != caller)

    def wrote(self) -> None:
        """Note that a part of a checkpoint has been written: the point in the middle of a file."""
        if not self._in_export:
            self._reach_in_save("checkpoint.write")

    def renamed(self, path: str, to: str) -> None:
        """Note that a checkpoint file has another name from now on: a job may write under a name and publish another.

        Both are the paths of the file itself, also where a directory above it was renamed.
        """
        self._record.write("checkpoint.renamed", path=path, to=to)
        if (save := self._last_saves.pop(path, None)) is not None:
            self._last_saves[to] = {**save, "path": to}

    def load(self, path: str, read: Callable[[], Any], step_of: Callable[[Any], int | None] | None = None) -> Any:
        """Read a checkpoint; return the result of ``read``. ``step_of`` finds the step in it, else its ``step_num``.

        A link to a checkpoint beside it (``latest``) is recorded as that checkpoint: later the link leads to another.
        """
        path = behind_links(os.path.abspath(path))
        self._record.write("load.begin", path=path)
        self._barriers.reach("checkpoint.load")
        result = read()
        self.loaded_step = (step_of or _step_num)(result)
        size = {"parameters": len(result)} if hasattr(result, "__len__") else {}
        self._record.write("load.end", path=path, **size)
        self._loaded.add(name_of(path))
        return result

    def loaded(self, path: str, step: int | None) -> None:
        """Note that a checkpoint of ``step`` has been read, unless :meth:`load` has recorded it before the training."""
        if name_of(path) not in self._loaded:
            self._record.write("load.begin", path=os.path.abspath(path))
            self._barriers.reach("checkpoint.load")
            self._record.write("load.end", path=os.path.abspath(path))
        self.loaded_step = self.loaded_step if step is None else step

    def loaded_unnamed(self, step: int | None) -> None:
        """Note that something has been read that is no file, as a buffer in memory: it may be a checkpoint of a step.

        It is not recorded, since nothing tells which file it was.
        """
        self._loaded_unnamed = True
        self.loaded_step = self.loaded_step if step is None else step

    @property
    def has_loaded(self) -> bool:
        """Whether a checkpoint may have been read since the training began, or before its beginning."""
        return bool(self._loaded) or self._loaded_unnamed

    def loaded_save(self) -> Save | None:
        """Return the save of the checkpoints that were read, as an earlier process has recorded it.

        None where no record has it, or where they are of several steps.
        """
        saves = {self._save_of(file) for file in self._loaded} - {None}
        return saves.pop() if len(saves) == 1 else None

    def saved_step(self) -> int | None:
        """Return the step of that save; None where it is not known."""
        save = self.loaded_save()
        return None if save is None else save.step

    def _reach_in_save(self, phase: str) -> None:
        if self._end_of_life:
            self._barriers.enter("save_ckpt", phase)
        else:
            self.reach(phase)


def behind_links(path: str) -> str:
    """Return an absolute path with the target of each link that leads to a name beside it, or below that."""
    done = ""
    for part in path.split(os.sep)[1:]:
        here = f"{done}{os.sep}{part}"
        if os.path.islink(here):
            target, above = os.path.realpath(here), os.path.realpath(done or os.sep).rstrip(os.sep)
            if target.startswith(above + os.sep):
                here = done + target[len(above) :]
        done = here
    return done or path


class _Later:
    """Parameters that a function returns anew whenever they are read."""

    def __init__(self, read: Callable[[], Named]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._read())


def _step_num(loaded: Any) -> int | None:
    value = loaded.get("step_num") if hasattr(loaded, "get") else None
    array = array_of(value)
    if array is not None and array.size == 1:
        return int(array.reshape(-1)[0])
    return value if isinstance(value, int) else None


def _median(values: list[float]) -> float | None:
    """Return the median; None of no values.

    Not by the module for it, whose import takes longer than a short job's step.
    """
    ordered, middle = sorted(values), len(values) // 2
    if not ordered:
        return None
    return round(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2, 2)
