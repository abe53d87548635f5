"""Start the agent in a process of the job: find out the process's place in the job, and set the hooks in a rank."""

from __future__ import annotations

import atexit
import os
import platform
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from chaos.agent.after_import import AfterImport
from chaos.agent.barriers import Barriers
from chaos.agent.channel import Channel
from chaos.agent.configuration import Configuration, Place, place_of, read_configuration
from chaos.agent.digests import Digests, Sampler
from chaos.agent.earlier_saves import EarlierSaves
from chaos.agent.errors import record_uncaught
from chaos.agent.launcher.exit_statuses import Reaped
from chaos.agent.launcher.rank_helpers import is_helper
from chaos.agent.lines import MODULE, Lines
from chaos.agent.loops import Loop
from chaos.agent.record import Record
from chaos.agent.stacks import offer_stacks
from chaos.agent.step_source import StepSource
from chaos.agent.torch.earlier_states import EarlierStates
from chaos.agent.training import Training

if TYPE_CHECKING:
    from chaos.agent.torch.loop import TorchLoop


@dataclass(frozen=True)
class Agent:
    """The agent's parts that an extension may use. A process that is not a rank has only the first three."""

    configuration: Configuration
    place: Place
    imports: AfterImport
    record: Record | None = None
    barriers: Barriers | None = None
    digests: Digests | None = None
    training: Training | None = None
    source: StepSource | None = None
    torch_loop: TorchLoop | None = None


def start(path: str) -> Agent:
    """Start the agent with the configuration file at ``path``; called once, before any module of the job."""
    configuration = read_configuration(path)
    place = place_of(os.environ)
    if place.rank is not None and is_helper(configuration.history, configuration.attempt, place.rank):
        place = Place("helper", None, place.ranks)
    imports = AfterImport()
    imports.install()
    if place.rank is not None:
        agent = _in_rank(configuration, place, imports)
    else:
        agent = Agent(configuration, place, imports)
        if place.role == "other":
            imports.watch("subprocess", Reaped(configuration).hook)
    for name in configuration.extensions:
        import_module(name).install(agent)
    return agent


def _in_rank(configuration: Configuration, place: Place, imports: AfterImport) -> Agent:
    assert place.rank is not None
    record = Record(configuration.history, run=configuration.run, attempt=configuration.attempt, rank=place.rank)
    atexit.register(record.close)
    offer = offer_stacks(configuration.stacks, place.rank)
    record.write(
        "agent.start", python=platform.python_version(), argv=list(getattr(sys, "orig_argv", [])), **offer.fields
    )
    record_uncaught(record)
    from chaos.agent.hooks import install_hooks
    from chaos.agent.loop_hooks import Optimizers, install_loop_hooks
    from chaos.agent.torch.hooks import install_torch_hooks
    from chaos.agent.torch.loop import TorchLoop
    from chaos.agent.torch.optimizers import Optimizers as TorchOptimizers

    channel, armed = _join(configuration, place.rank, record)
    barriers = Barriers(record, channel, armed)
    sampler = None if configuration.sample_seed is None else Sampler(configuration.sample_seed)
    digests = Digests(record, configuration.digest_interval, configuration.digest_steps, sampler=sampler)
    saves = EarlierSaves(configuration.history, os.getpid())
    training = Training(
        record,
        barriers,
        digests,
        configuration.steps_per_update,
        save_of=saves.of,
        exports=configuration.settings.get("exports", ()),
        stacks=offer.file,
    )
    source = StepSource(record, training)
    atexit.register(source.finish)
    imports.watch("mindspore.train.model", lambda _: _finish_before(source))
    install_hooks(imports, record, barriers, training, source)
    optimizers = Optimizers()
    loop = Loop(
        training,
        source,
        optimizers,
        resumed=configuration.attempt == "resume",
        armed=barriers.armed_phases,
        in_model=not configuration.extensions,
    )
    install_loop_hooks(imports, loop, optimizers)
    torch_optimizers = TorchOptimizers()
    ends_with = configuration.settings.get("step_optimizer")
    first = configuration.attempt == "train" and not saves.has_predecessor(place.rank)
    earlier = None if first else EarlierStates(configuration.history, place.rank, os.getpid())
    torch_loop = TorchLoop(training, source, torch_optimizers, ends_with=ends_with, earlier=earlier)
    install_torch_hooks(imports, training, torch_loop, torch_optimizers)
    imports.watch_file(MODULE, Lines(training, source).connect)
    return Agent(configuration, place, imports, record, barriers, digests, training, source, torch_loop)


def _finish_before(source: StepSource) -> None:
    """Let a loop of the job's own end before the modules that are imported by now end their work at exit.

    MindSpore leaves its cluster there, and may crash (F-15): the end of the training is on record then.
    """
    atexit.unregister(source.finish)
    atexit.register(source.finish)


def _join(configuration: Configuration, rank: int, record: Record) -> tuple[Channel | None, list[dict[str, object]]]:
    if configuration.socket is None or configuration.secret is None:
        return None, []
    with open(configuration.secret, encoding="ascii") as file:
        secret = file.read().strip()
    try:
        channel = Channel(configuration.socket, secret)
    except OSError as error:
        record.write("agent.alone", reason=str(error))
        return None, []
    armed = channel.hello(run=configuration.run, attempt=configuration.attempt, rank=rank, pid=os.getpid())
    if armed is None:
        record.write("agent.alone", reason="the harness has refused this process, or has gone")
        return None, []
    return channel, armed
