"""The survey of a job's directory: its script, its launch line, and what both say about the training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.base.refusal import Refused
from chaos.init.checkpoints import Load, Save, loads, saves
from chaos.init.device import Device, read_device
from chaos.init.flags import Option, options, undeclared_options
from chaos.init.launch_lines import LaunchLine, launch_lines
from chaos.init.layout import Layout, read_layout
from chaos.init.loops import Loop, read_loop
from chaos.init.noise import signs_of_noise, signs_without_seed
from chaos.init.paths import RelativePath, relative_paths
from chaos.init.resume import ResumeOption, resume_options
from chaos.init.source import Source, UnreadableSource, imports, read_source, read_with_modules, shown
from chaos.init.torch.batches import Batches, read_batches
from chaos.init.torch.device import read_torch_device
from chaos.init.torch.exports import Export, without_exports
from chaos.init.torch.lightning import read_lightning
from chaos.init.torch.shards import Shards, read_shards
from chaos.init.torch.trainer import read_trainer
from chaos.init.values import Values

FRAMEWORK = "mindspore"

TORCH = "torch"

_OTHERS = (TORCH, "tensorflow", "jax", "paddle")

_MOST_SCRIPTS = 200
"""Most Python files of a directory that are looked into."""


@dataclass(frozen=True)
class Candidate:
    """A script that may be the one to train, and why."""

    path: Path
    why: str
    launch: LaunchLine | None = None


@dataclass(frozen=True)
class Survey:
    """The facts that the files of a job state. ``framework`` is empty where none of a known name is imported."""

    directory: Path
    script: Path
    launch: LaunchLine | None
    arguments: tuple[str, ...]
    framework: str
    loop: Loop
    saves: tuple[Save, ...]
    exports: tuple[Export, ...]

    loads: tuple[Load, ...]
    options: tuple[Option, ...]
    resumes: tuple[ResumeOption, ...]
    layout: Layout
    shards: Shards | None
    device: Device | None
    noise: tuple[str, ...]
    unseeded: tuple[str, ...]
    """The signs of noise that a seed at the start would remove."""

    batches: Batches | None
    paths: tuple[RelativePath, ...]
    left_out: tuple[str, ...]
    values: Values

    @property
    def name(self) -> str:
        """The script as a reader of the directory names it."""
        return shown(self.script, self.directory)


def candidates(directory: Path) -> list[Candidate]:
    """Return the scripts that may train: those that a launch line starts, else those whose source trains."""
    launched: list[Candidate] = []
    for line in launch_lines(directory):
        path = line.path(directory)
        if path is not None and path not in [candidate.path for candidate in launched]:
            launched.append(Candidate(path, f"{line.where} starts it with {line.launcher}", line))
    if launched:
        return launched
    training = []
    for path in sorted(directory.glob("*.py"))[:_MOST_SCRIPTS]:
        try:
            source = read_source(path, path.name)
            loop = read_loop([source], Values([source], options([source]), (), ""))
        except (UnreadableSource, RecursionError):
            continue
        if loop.form and imports(source) & {FRAMEWORK, *_OTHERS}:
            training.append(Candidate(path, f"{loop.where} trains"))
    return training


def survey(directory: Path, script: Path, launch: LaunchLine | None, arguments: Sequence[str] | None) -> Survey:
    """Read a script, the modules beside it and its launch line. Raises Refused where the script cannot be read.

    ``arguments`` are those of the user; None takes those of the launch line.
    """
    try:
        return _survey(directory, script, launch, arguments)
    except UnreadableSource as error:
        raise Refused(str(error)) from error
    except RecursionError as error:
        raise Refused(f"{shown(script, directory)}: its expressions are nested too deeply to be read") from error


def _survey(directory: Path, script: Path, launch: LaunchLine | None, arguments: Sequence[str] | None) -> Survey:
    sources, left_out = read_with_modules(script, directory)
    own = tuple(arguments) if arguments is not None else () if launch is None else launch.arguments
    known = options(sources)
    framework = _framework(sources)
    where = "--argument" if arguments is not None or launch is None else launch.where
    values = Values(sources, [*known, *undeclared_options(known, own, where)], own, where)
    saved, loaded = saves(sources, values), loads(sources, values)
    exports: list[Export] = []
    if framework == TORCH:
        saved, exports = without_exports(saved, loaded, sources, values, directory)
    resumes = resume_options(known, loaded, saved, values)
    loop, trainer = read_loop(sources, values), read_lightning(sources, values, known)
    if trainer is None and not saved:
        trainer = read_trainer(sources, values)
    if trainer is not None:
        saved, loaded = list(trainer.saves), list(trainer.loads)
        resumes = resumes if trainer.resume is None else [trainer.resume]
        loop = replace(loop, steps=trainer.steps or loop.steps, epochs=trainer.epochs or loop.epochs)
    device = read_device(sources, known, values)
    return Survey(
        directory,
        script,
        launch,
        own,
        framework,
        loop,
        tuple(saved),
        tuple(exports),
        tuple(loaded),
        tuple(known),
        tuple(resumes),
        read_layout(sources, values),
        read_shards(sources, values),
        device if device is not None or framework != TORCH else read_torch_device(sources),
        tuple(signs_of_noise(sources)),
        tuple(signs_without_seed(sources, framework)),
        read_batches(sources, values),
        tuple(relative_paths(sources, own, directory)),
        tuple(left_out),
        values,
    )


def launch_of(directory: Path, script: Path) -> LaunchLine | None:
    """Return the first launch line that starts a script."""
    lines = ((line, line.path(directory)) for line in launch_lines(directory))
    return next((line for line, path in lines if path is not None and path.samefile(script)), None)


def _framework(sources: Sequence[Source]) -> str:
    words: set[str] = set().union(*(imports(source) for source in sources))
    return next((name for name in (FRAMEWORK, *_OTHERS) if name in words), "")
